package term

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// PrintJSON prints a value as one line.
func PrintJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return PrintLine(w, text)
}

// PrintLine prints a line of JSON. On a terminal unprintable characters are escaped;
// other writers get the exact bytes.
func PrintLine(w io.Writer, line []byte) error {
	if IsTerminal(w) {
		line = escapeUnprintable(line)
	}
	_, err := fmt.Fprintf(w, "%s\n", line)
	return err
}

// escapeUnprintable writes the same JSON value in printable characters: unprintable
// ones occur only in strings. Invalid UTF-8 becomes U+FFFD.
func escapeUnprintable(line []byte) []byte {
	safe := make([]byte, 0, len(line))
	for _, r := range string(line) {
		switch high, low := utf16.EncodeRune(r); {
		case unicode.IsPrint(r):
			safe = utf8.AppendRune(safe, r)
		case high != unicode.ReplacementChar:
			safe = fmt.Appendf(safe, "\\u%04x\\u%04x", high, low)
		default:
			safe = fmt.Appendf(safe, "\\u%04x", r)
		}
	}
	return safe
}
