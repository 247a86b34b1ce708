package main

import (
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// newLogger writes lines for people on a terminal and JSON elsewhere, unless
// the configuration says which.
func newLogger(w io.Writer, c logConfig) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.DurationFieldInteger = true
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel // check has refused it before
	}
	if c.Format == "console" || c.Format == "auto" && terminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !colourful(w)}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	switch shown := w.(type) {
	case *footer:
		w = shown.Writer
	case screen:
		w = shown.Writer
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// colourful reports whether w shows colour and the user wants it.
func colourful(w io.Writer) bool { return terminal(w) && !dumb() && os.Getenv("NO_COLOR") == "" }

// A console is where a daemon says what it does: in its log and, where somebody
// looks on, in a line below that.
type console struct {
	log    zerolog.Logger
	footer *footer // nil: nobody does
}

func newConsole(w io.Writer, c logConfig) console {
	if f := footerOf(w); f != nil {
		return console{log: newLogger(f, c), footer: f}
	}
	return console{log: newLogger(w, c)}
}
