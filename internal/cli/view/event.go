package view

import (
	"fmt"
	"io"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintEvent prints an event in one line: in words at a terminal, with its data elsewhere.
func PrintEvent(w io.Writer, e client.Event, asJSON bool) error {
	if asJSON {
		return term.PrintJSON(w, e)
	}
	if term.IsTerminal(w) {
		return printEventWords(term.ScreenOf(w), e)
	}
	about := "-"
	if e.Task != "" {
		about = fmt.Sprintf("%s r%d", term.Escape(string(e.Task)), e.Revision)
	}
	_, err := fmt.Fprintf(w, "%d  %s  %-18s %s  %s\n", e.Seq, term.Stamp(e.Time), term.Escape(string(e.Kind)), about, term.Escape(string(e.Data)))
	return err
}

// printEventWords prints an event for people.
func printEventWords(s term.Screen, e client.Event) error {
	head := fmt.Sprintf("%s  %-18s ", term.Stamp(e.Time), term.OneLine(string(e.Kind)))
	words := term.OneLine(string(e.Task)) + "  " + term.OneLine(describe(e))
	if s.Columns > 0 {
		words = term.Cut(words, max(1, s.Columns-len(head)))
	}
	_, err := fmt.Fprintln(s, s.Paint(term.Faint, head)+words)
	return err
}
