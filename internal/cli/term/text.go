package term

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// Cut shortens a line of text to so many columns; 0 means no limit.
func Cut(text string, columns int) string {
	if columns <= 0 || Width(text) <= columns {
		return text
	}
	taken, room := 0, columns-1 // one for the ellipsis
	for at, r := range text {
		if taken += runeWidth(r); taken > room {
			return text[:at] + "…"
		}
	}
	return text
}

// Width returns how many columns a text takes.
func Width(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// OneLine escapes text and puts it on one line.
func OneLine(text string) string {
	return Escape(strings.Join(strings.Fields(text), " "))
}

// Escape replaces characters that control a terminal by their escapes. Line breaks
// and tabs stay.
func Escape(s string) string {
	var safe bytes.Buffer
	for _, r := range s {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			fmt.Fprintf(&safe, "\\u%04x", r)
			continue
		}
		safe.WriteRune(r)
	}
	return safe.String()
}

// ShellWord quotes a text so that a shell reads it as one word.
func ShellWord(text string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("%+,-./:@_", r)
	}
	if text != "" && !strings.ContainsFunc(text, odd) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Indent puts two spaces before each line.
func Indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }

// Age shortens a duration to its greatest unit.
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Stamp writes a time in the local time zone.
func Stamp(t time.Time) string { return t.Local().Format(time.DateTime) }
