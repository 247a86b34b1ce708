package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// maxQuote limits a quoted text, in bytes.
const maxQuote = 500

func short(text string) string {
	if len(text) <= maxQuote {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuote], "") + "..."
}

// stderrTail quotes the end of the agent's stderr, escaped; "" if it is empty.
func stderrTail(j task.Job) string {
	words, _ := readStderrTail(j) // an error message works without it
	return words
}

func readStderrTail(j task.Job) (string, error) {
	if j.Dir == "" {
		return "", nil
	}
	text, cut, err := readStderrEnd(j.Dir, maxQuote)
	if err != nil {
		return "", err
	}
	return quote(text, cut), nil
}

// readStderrEnd returns the last bytes of standard error, at most as many as given, and whether
// there are more before them.
func readStderrEnd(dir string, most int64) (text []byte, cut bool, err error) {
	return readEnd(dir, runner.StderrFile, most)
}

// readEnd returns the last bytes of a file of a run, as readStderrEnd does.
func readEnd(dir, name string, most int64) (text []byte, cut bool, err error) {
	f, err := openRegular(dir, name)
	if err != nil {
		return nil, false, err
	}
	defer f.close()
	offset := max(0, f.size-most)
	text, err = f.read(offset, most)
	return text, offset > 0, err
}

// quote quotes the end of a text whose beginning may be cut.
func quote(text []byte, cut bool) string {
	text = text[max(0, len(text)-maxQuote):]
	if _, lines, ok := bytes.Cut(text, []byte("\n")); cut && ok && len(bytes.TrimSpace(lines)) > 0 {
		text = lines // begin with a whole line, if there is one
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	words := strings.TrimSpace(string(dialect.Plain(text)))
	if words == "" {
		return ""
	}
	return fmt.Sprintf("; its last words: %q", words)
}

// shortestSecret is the length from which the value of a variable is taken for a secret, in bytes.
const shortestSecret = 8

// withoutSecrets returns a text without the values of the variables that exec.env names: an agent
// may print its environment before it ends.
func (g *Agent) withoutSecrets(text string) string {
	for _, entry := range g.binding.Env {
		name, _, _ := strings.Cut(entry, "=")
		for _, set := range g.environ {
			value, ok := strings.CutPrefix(set, name+"=")
			if !ok || len(value) < shortestSecret || !strings.Contains(text, value) {
				continue
			}
			if _, err := os.Lstat(value); err != nil || !filepath.IsAbs(value) { // the path of a file is no secret
				text = strings.ReplaceAll(text, value, "("+name+")")
			}
		}
	}
	return text
}
