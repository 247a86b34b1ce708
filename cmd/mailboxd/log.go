package main

import (
	"io"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/config"
	"mailboxd/internal/term"
)

// newLogger logs console lines to a terminal and JSON elsewhere, unless the
// configuration says which.
func newLogger(w io.Writer, c config.Log) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.DurationFieldInteger = true
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel // config has checked it
	}
	if c.Format == "console" || c.Format == "auto" && term.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !term.HasColour(w)}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// A console has the log of a daemon and, on a terminal, the status line below it.
type console struct {
	log    zerolog.Logger
	footer *term.Footer // nil without a terminal
}

func newConsole(w io.Writer, c config.Log) console {
	if f := term.FooterOf(w); f != nil {
		return console{log: newLogger(f, c), footer: f}
	}
	return console{log: newLogger(w, c)}
}
