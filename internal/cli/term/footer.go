package term

import (
	"io"
	"sync"
)

// A Footer is a terminal with a status line at the bottom. Other lines are written
// above it.
type Footer struct {
	Screen

	mu   sync.Mutex // guards the terminal
	text string     // the status line; "" when there is none
}

// FooterOf returns a footer on w, or nil when w is no terminal that can show one.
func FooterOf(w io.Writer) *Footer {
	s := ScreenOf(w)
	if !s.Redraws {
		return nil
	}
	return &Footer{Screen: s}
}

// Write writes whole lines above the status line.
func (f *Footer) Write(lines []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text == "" {
		return f.Screen.Write(lines)
	}
	_, err := io.WriteString(f.Screen, clearLine+string(lines)+f.text)
	return len(lines), err
}

// clearLine clears the line of the cursor.
const clearLine = "\r\x1b[K"

// Show replaces the status line; "" removes it.
func (f *Footer) Show(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	columns := ScreenOf(f.Writer).Columns // the size may have changed
	text = f.Paint(Faint, Cut(text, columns-1))
	if text == f.text {
		return
	}
	f.text = text
	_, _ = io.WriteString(f.Screen, clearLine+text) // the log has all that matters
}
