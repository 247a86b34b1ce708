package main

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// printJSON prints a value as one line.
func printJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return printLine(w, text)
}

// printLine prints a line of JSON. On a terminal, what that would act on or not show
// is escaped; anything else gets the exact bytes.
func printLine(w io.Writer, line []byte) error {
	if terminal(w) {
		line = escapeUnprintable(line)
	}
	_, err := fmt.Fprintf(w, "%s\n", line)
	return err
}

// escapeUnprintable writes the same JSON text in printable characters. Those that
// are not printable stand only in strings, where each has an escape; bytes that are
// no UTF-8 become U+FFFD.
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
