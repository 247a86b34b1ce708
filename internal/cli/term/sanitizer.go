package term

import (
	"io"
	"strings"
	"unicode/utf8"
)

// A Sanitizer escapes control characters in what a program wrote, so that they
// don't control the terminal. A carriage return becomes the end of a line, so
// nothing is overwritten.
type Sanitizer struct {
	out  io.Writer
	rest []byte // the first bytes of an incomplete character
}

// NewSanitizer returns a sanitizer that writes to a terminal.
func NewSanitizer(to io.Writer) *Sanitizer { return &Sanitizer{out: to} }

// Write escapes text, and keeps back a character that is incomplete.
func (t *Sanitizer) Write(text []byte) (int, error) {
	all := append(t.rest, text...)
	end := len(all) - incomplete(all)
	t.rest = append([]byte(nil), all[end:]...)
	_, err := io.WriteString(t.out, Escape(lineBreaks.Replace(string(all[:end]))))
	return len(text), err
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// incomplete returns how many bytes at the end of a text may be the beginning
// of a character.
func incomplete(text []byte) int {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
