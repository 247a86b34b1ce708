package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintAnswer prints the answer in a result as plain text: the summary and the actions, or
// the output of an agent that gave no summary.
func PrintAnswer(w io.Writer, raw []byte) error {
	r, findings := envelope.DecodeResult(raw)
	if findings.Refused() {
		_, err := fmt.Fprintln(w, term.Escape(strings.TrimRight(string(raw), "\n")))
		return err
	}
	text := r.Output.Summary
	if (text == "" || text == envelope.NoSummary) && r.Output.Extra != nil {
		extra := r.Output.Extra.Clone()
		if err := extra.Indent(jsontext.WithIndent("  ")); err == nil {
			text = string(extra)
		}
	}
	if text != "" && (r.Error == envelope.Error{} || text != r.Error.Message) {
		if _, err := fmt.Fprintln(w, term.Escape(strings.TrimRight(text, "\n"))); err != nil {
			return err
		}
	}
	for _, a := range r.Output.Actions {
		if _, err := fmt.Fprintf(w, "- %s: %s (%s)\n", term.Escape(a.Kind), term.Escape(a.Description), term.Escape(a.Status)); err != nil {
			return err
		}
	}
	return nil
}

// PrintEnd prints how a task ended: its error, and one line with status, cost and time.
func PrintEnd(w io.Writer, id envelope.ID, raw []byte) error {
	s := term.ScreenOf(w)
	r, findings := envelope.DecodeResult(raw)
	if findings.Refused() {
		return nil // PrintAnswer shows it
	}
	if r.Error != (envelope.Error{}) {
		s.Line("%s: %s", s.Paint(term.Red, term.Escape(string(r.Error.Kind))), term.OneLine(r.Error.Message))
	}
	if r.Review.Required {
		s.Line("%s: %s", s.Paint(term.Yellow, "to review"), term.OneLine(cmp.Or(r.Review.Reason, "asked for")))
	} else if r.Review.Reason != "" {
		s.Line("%s: %s", s.Paint(term.Yellow, "note"), term.OneLine(r.Review.Reason))
	}
	parts := []string{s.Paint(term.Bold, term.OneLine(string(id))), s.Paint(paintOfStatus(r.Status), term.Escape(string(r.Status)))}
	if r.Cost != nil && *r.Cost != (envelope.Cost{}) {
		parts = append(parts, costWords(*r.Cost))
	}
	_, err := fmt.Fprintf(s, "%s\n", strings.Join(append(parts, r.Time.Wall.Round(time.Millisecond).String()), "  "))
	return err
}

// costWords says what a task cost.
func costWords(c envelope.Cost) string {
	if c.Unpriced || c.USDCents == 0 {
		return fmt.Sprintf("%d tokens", c.Tokens)
	}
	return fmt.Sprintf("%d tokens, $%d.%02d", c.Tokens, c.USDCents/100, c.USDCents%100)
}

// HeldNote says in one line what a held task waits for, and the command that lets it go on.
func (s WaitContext) HeldNote(t client.Task, short envelope.ID) string {
	note := "the task waits for " + s.Wait(t)
	if asked, known := s.Asked[t.ID]; known {
		s.Asked = map[envelope.ID]client.Approval{short: asked}
	}
	if s.Quoted[t.ID] != "" {
		s.Quoted = map[envelope.ID]string{short: s.Quoted[t.ID]}
	}
	t.ID = short
	if next := s.next(t); next != "" {
		note += "; next: " + next
	}
	return note
}
