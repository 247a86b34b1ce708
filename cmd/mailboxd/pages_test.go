package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A block is one fenced console block of a page: commands behind "$ ", and
// below each what it prints.
type block struct {
	line     int // where it stands
	commands []command
}

type command struct {
	text string
	want string // what it prints; "" when the page does not say
}

// A docsReader goes through a page line by line.
type docsReader struct {
	t     *testing.T
	page  string
	fence string // the mark of the fence that is open, with "```"; "" outside
	open  block
	end   string // the word that ends the here-document that is open; "" without one

	blocks []block
}

// consoleBlocks finds the blocks of a page. Commands that stand in any other
// would be ones that no test runs.
func consoleBlocks(t *testing.T, page, text string) []block {
	t.Helper()
	r := &docsReader{t: t, page: page}
	for i, line := range strings.Split(text, "\n") {
		_, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced && r.fence == "":
			r.fence, r.open = line, block{line: i + 1}
			if slices.Contains([]string{"sh", "bash", "shell"}, line[3:]) {
				t.Errorf("%s:%d: write ```console, and $ before each command, so that the page is tested", page, i+1)
			}
		case fenced:
			if r.fence == "```console" {
				r.blocks = append(r.blocks, r.open)
			}
			r.fence = ""
		case r.fence == "```console":
			r.console(i+1, line)
		case (r.fence == "```" || r.fence == "" && strings.HasPrefix(line, "    ")) && untested.MatchString(line):
			t.Errorf("%s:%d: commands outside of a ```console block are not tested", page, i+1)
		}
	}
	if r.fence != "" {
		t.Errorf("%s: a fence is left open", page)
	}
	return r.blocks
}

// untested is what begins as something that somebody would type.
var untested = regexp.MustCompile(`^ *(\$ |(mailboxd|go (run|install|build|test|tool)|git|sudo|export|cd|mkdir|cp|curl|kill|systemctl|journalctl|loginctl) )`)

var heredoc = regexp.MustCompile(`<<'?(\w+)'?`)

// console takes one line of a console block.
func (r *docsReader) console(number int, line string) {
	if strings.HasPrefix(line, "$ ") && r.end == "" {
		r.open.commands = append(r.open.commands, command{text: line[2:]})
		if word := heredoc.FindStringSubmatch(line); word != nil {
			r.end = word[1]
		}
		return
	}
	if len(r.open.commands) == 0 {
		r.t.Errorf("%s:%d: output before any command", r.page, number)
		return
	}
	last := &r.open.commands[len(r.open.commands)-1]
	switch {
	case r.end != "":
		last.text += "\n" + line
		if line == r.end {
			r.end = ""
		}
	case strings.HasSuffix(last.text, "\\") && last.want == "":
		last.text += "\n" + line
	default:
		last.want += line + "\n"
	}
}
