package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
	"golang.org/x/text/width"
)

// A screen is where a person reads. A terminal has a size, and perhaps colours
// and a cursor that moves; anything else has none of these, so what is written
// there is never cut, coloured or written over.
type screen struct {
	io.Writer
	columns, rows int  // 0: without end
	colour        bool // shows colour, and the user wants it
	redraws       bool // its cursor moves
}

// screenOf looks at w as it is now: a window may be another size a moment later.
func screenOf(w io.Writer) screen {
	s := screen{Writer: w, colour: colourful(w)}
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return s
	}
	s.redraws = !dumb()
	s.columns, s.rows = 80, 24 // as terminals were before they could be asked
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		s.columns, s.rows = int(size.Col), int(size.Row)
	}
	return s
}

// dumb reports whether the terminal knows no control sequences.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// A paint is how a text is shown where there is colour. The zero value is
// plain.
type paint string

const (
	faint  paint = "2"
	bold   paint = "1"
	red    paint = "31"
	green  paint = "32"
	yellow paint = "33"
	blue   paint = "34"
)

// paint colours a text, if the screen has colours.
func (s screen) paint(p paint, text string) string {
	if !s.colour || p == "" || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// line prints one line, cut to the screen.
func (s screen) line(format string, args ...any) {
	fmt.Fprintln(s, cut(fmt.Sprintf(format, args...), s.columns))
}

// cut shortens a text without line breaks to so many columns; 0 is any number.
func cut(text string, columns int) string {
	if columns <= 0 || wide(text) <= columns {
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

// wide returns how many columns a text takes.
func wide(text string) (columns int) {
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

// flat makes text from outside safe to show within a line.
func flat(text string) string {
	return plain(strings.Join(strings.Fields(text), " "))
}
