package agent

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"mailboxd/envelope/dialect"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// maxWords bounds, in bytes, what a requester is told in one message.
const maxWords = 500

func short(text string) string {
	if len(text) <= maxWords {
		return text
	}
	return strings.ToValidUTF8(text[:maxWords], "") + "..."
}

// lastWords quotes the end of what the agent printed on stderr, escaped, or
// returns "" when that is nothing.
func lastWords(j task.Job) string {
	words, _ := readLastWords(j) // an error message does without them
	return words
}

func readLastWords(j task.Job) (string, error) {
	if j.Dir == "" {
		return "", nil
	}
	f, err := openRegular(j.Dir, runner.StderrFile)
	if err != nil {
		return "", err
	}
	defer f.close()
	offset := max(0, f.size-maxWords)
	text, err := f.read(offset, maxWords)
	if err != nil {
		return "", err
	}
	return quote(text, offset > 0), nil
}

// quote makes words of the end of a text, of which the beginning may be cut.
func quote(text []byte, cut bool) string {
	text = text[max(0, len(text)-maxWords):]
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
