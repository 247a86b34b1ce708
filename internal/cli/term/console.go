package term

import (
	"io"
	"time"

	"github.com/rs/zerolog"
)

// NewLogger returns a logger of a level. The format is "console", "json", or "auto" for console
// lines on a terminal and JSON elsewhere.
func NewLogger(w io.Writer, level, format string) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.DurationFieldInteger = true
	least, err := zerolog.ParseLevel(level)
	if err != nil {
		least = zerolog.InfoLevel
	}
	if format == "console" || format == "auto" && IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !HasColour(w)}
	}
	return zerolog.New(w).Level(least).With().Timestamp().Logger()
}

// A Console has the log of a daemon and, on a terminal, the status line below it.
type Console struct {
	Log    zerolog.Logger
	Footer *Footer // nil without a terminal
}

// NewConsole returns the console of a daemon that logs to w.
func NewConsole(w io.Writer, level, format string) Console {
	if f := FooterOf(w); f != nil {
		return Console{Log: NewLogger(f, level, format), Footer: f}
	}
	return Console{Log: NewLogger(w, level, format)}
}
