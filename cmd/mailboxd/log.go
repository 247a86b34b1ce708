package main

import (
	"io"
	"time"

	"mailboxd/internal/config"
	"mailboxd/internal/term"

	"github.com/rs/zerolog"
)

// newLogger writes lines for people on a terminal and JSON elsewhere, unless
// the configuration says which.
func newLogger(w io.Writer, c config.Log) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.DurationFieldInteger = true
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel // check has refused it before
	}
	if c.Format == "console" || c.Format == "auto" && term.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !term.HasColour(w)}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// A console is where a daemon says what it does: in its log and, where somebody
// looks on, in a line below that.
type console struct {
	log    zerolog.Logger
	footer *term.Footer // nil: nobody does
}

func newConsole(w io.Writer, c config.Log) console {
	if f := term.FooterOf(w); f != nil {
		return console{log: newLogger(f, c), footer: f}
	}
	return console{log: newLogger(w, c)}
}
