// Package term prints to terminals: it knows their size and colours, cuts text to fit,
// and escapes what would control them. Other writers get plain, whole text.
package term

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// A Screen is a writer with what is known of its terminal. A writer that is no
// terminal has no size, colours or cursor: text for it is never cut or overwritten.
type Screen struct {
	io.Writer
	Columns, Rows int  // 0: without end
	Colour        bool // shows colour, and the user wants it
	Redraws       bool // its cursor moves
}

// ScreenOf returns w as it is now; the size of a window can change later.
func ScreenOf(w io.Writer) Screen {
	if s, ok := w.(Screen); ok {
		return s
	}
	s := Screen{Writer: w, Colour: HasColour(w)}
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return s
	}
	s.Redraws = !dumb()
	s.Columns, s.Rows = 80, 24 // when the terminal does not say its size
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		s.Columns, s.Rows = int(size.Col), int(size.Row)
	}
	return s
}

// dumb reports whether the terminal knows no control sequences.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// A Paint is a colour or weight of text. The zero value is plain text.
type Paint string

// The paints, as the parameters of their control sequences.
const (
	Faint  Paint = "2"
	Bold   Paint = "1"
	Red    Paint = "31"
	Green  Paint = "32"
	Yellow Paint = "33"
	Cyan   Paint = "36" // blue is too dark on black
)

// Paint colours a text, if the screen has colours.
func (s Screen) Paint(p Paint, text string) string {
	if !s.Colour || p == "" || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// Line prints one line, cut to the screen.
func (s Screen) Line(format string, args ...any) {
	fmt.Fprintln(s, Cut(fmt.Sprintf(format, args...), s.Columns))
}

// IsTerminal reports whether w writes to a terminal.
func IsTerminal(w io.Writer) bool {
	switch shown := w.(type) {
	case *Footer:
		w = shown.Writer
	case Screen:
		w = shown.Writer
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// HasColour reports whether w shows colour and the user wants it.
func HasColour(w io.Writer) bool { return IsTerminal(w) && !dumb() && os.Getenv("NO_COLOR") == "" }
