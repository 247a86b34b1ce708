package main

import (
	"io"
	"sync"
)

// A footer is a terminal whose last line tells what goes on now. Whatever else
// is written to it goes above that line, so the two never mix.
type footer struct {
	screen

	mu   sync.Mutex // guards what is on the terminal
	text string     // of the last line; "" when there is none
}

// footerOf returns a footer on w, or nil when that is no terminal which could
// show one.
func footerOf(w io.Writer) *footer {
	s := screenOf(w)
	if !s.redraws {
		return nil
	}
	return &footer{screen: s}
}

// Write writes whole lines above the last one.
func (f *footer) Write(lines []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text == "" {
		return f.screen.Write(lines)
	}
	_, err := io.WriteString(f.screen, clearLine+string(lines)+f.text)
	return len(lines), err
}

// clearLine takes the last line away.
const clearLine = "\r\x1b[K"

// say makes a text the last line; "" takes it away.
func (f *footer) say(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	columns := screenOf(f.Writer).columns // the window may have another size by now
	text = f.paint(faint, cut(text, columns-1))
	if text == f.text {
		return
	}
	f.text = text
	_, _ = io.WriteString(f.screen, clearLine+text) // who cannot see it misses nothing that the log does not say
}
