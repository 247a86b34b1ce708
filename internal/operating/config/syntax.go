package config

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var lineOfError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// syntaxHints say what to do about an error of the YAML parser.
var syntaxHints = []struct{ words, hint string }{
	{"mapping values are not allowed", `a second ": " in one line; quote the text, or correct the indentation`},
	{"did not find expected key", "the indentation differs from the lines above, or a quote or bracket is not closed"},
	{"did not find expected '-' indicator", "the indentation differs from the list above"},
	{"did not find expected ',' or", "a bracket or brace is not closed"},
	{"found unexpected end of stream", "a quote is not closed"},
	{"could not find expected ':'", `a key without ": " after it`},
	{"unknown anchor", "no &name above defines it"},
}

// syntaxError returns the place and the words of an error of the YAML parser, which knows
// the line alone.
func syntaxError(text []byte, err error) (position, string) {
	lines := strings.Split(string(text), "\n")
	found := lineOfError.FindStringSubmatch(err.Error())
	number, message := 1, err.Error()
	if found != nil {
		number, _ = strconv.Atoi(cmp.Or(found[1], "1"))
		message = strings.TrimSpace(found[2])
	}
	if strings.Contains(message, "cannot start any token") {
		for i, line := range lines {
			if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
				return position{i + 1, strings.IndexByte(line, '\t') + 1}, "not YAML: a tab; indent with spaces"
			}
		}
		message += "; quote the text"
	}
	for _, known := range syntaxHints {
		if strings.Contains(message, known.words) {
			message += ": " + known.hint
			break
		}
	}
	number = lastGoodLine(lines, number-1)
	line := lines[min(number, len(lines)-1)]
	return position{number + 1, len(line) - len(strings.TrimLeft(line, " ")) + 1}, "not YAML: " + message
}

// maxLines limits the search for the line of an error.
const maxLines = 2000

// lastGoodLine returns how many lines are YAML by themselves: the parser names the line
// where a section begins, not the one that ends it.
func lastGoodLine(lines []string, guess int) int {
	if len(lines) > maxLines {
		return min(max(guess, 0), len(lines)-1)
	}
	for n := len(lines) - 1; n > 0; n-- {
		var node yaml.Node
		if yaml.Unmarshal([]byte(strings.Join(lines[:n], "\n")+"\n"), &node) == nil {
			return n
		}
	}
	return 0
}

var placeLine = regexp.MustCompile(`(?mi)^(root|state_dir):[ \t].*$`)

// salvage returns the lines of a text that is not YAML that say where the mailbox and its
// state are; nil without any.
func salvage(text []byte) *yaml.Node {
	var lines []string
	for _, line := range placeLine.FindAllString(string(text), -1) {
		if yaml.Unmarshal([]byte(line), &map[string]string{}) == nil {
			lines = append(lines, line)
		}
	}
	var document yaml.Node
	if yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &document) != nil || len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}
