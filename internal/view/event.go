package view

import (
	"fmt"
	"io"

	"mailboxd/internal/client"
	"mailboxd/internal/term"
)

// PrintEvent prints an event in one line.
func PrintEvent(w io.Writer, e client.Event, asJSON bool) error {
	if asJSON {
		return term.PrintJSON(w, e)
	}
	about := "-"
	if e.Task != "" {
		about = fmt.Sprintf("%s r%d", term.Escape(string(e.Task)), e.Revision)
	}
	_, err := fmt.Fprintf(w, "%d  %s  %-18s %s  %s\n", e.Seq, term.Stamp(e.Time), term.Escape(string(e.Kind)), about, term.Escape(string(e.Data)))
	return err
}
