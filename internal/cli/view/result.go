package view

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/sandboxing/sandbox"
)

// PrintResult prints a result, or its JSON in one line.
func PrintResult(w io.Writer, raw []byte, asJSON bool) error {
	return PrintResultOf(w, "", raw, asJSON)
}

// PrintResultOf prints a result with a short id of its task; "" is the whole one.
func PrintResultOf(w io.Writer, short envelope.ID, raw []byte, asJSON bool) error {
	r, findings := envelope.DecodeResult(raw)
	text := bytes.TrimRight(raw, "\n")
	switch {
	case asJSON:
		line := jsontext.Value(bytes.Clone(text))
		if err := line.Compact(); err != nil {
			return fmt.Errorf("read result: %w", err)
		}
		return term.PrintLine(w, line)
	case findings.Refused():
		_, err := fmt.Fprintln(w, term.Escape(string(text)))
		return err
	}
	s := term.ScreenOf(w)
	fmt.Fprintf(s, "%s  %s  by %s\n", s.Paint(term.Bold, term.Escape(string(cmp.Or(short, r.TaskID)))), s.Paint(paintOfStatus(r.Status), term.Escape(string(r.Status))), term.Escape(r.AgentID))
	if r.Output.Summary != "" {
		fmt.Fprintf(w, "\n%s\n\n", indented(s, r.Output.Summary))
	}
	for _, a := range r.Output.Actions {
		fmt.Fprintf(w, "  - %s: %s (%s)\n", term.Escape(a.Kind), term.Escape(a.Description), term.Escape(a.Status))
	}
	switch kind := s.Paint(term.Red, term.Escape(string(r.Error.Kind))); {
	case r.Error == (envelope.Error{}):
	case strings.Contains(r.Output.Summary, r.Error.Message):
		fmt.Fprintf(w, "  error     %s\n", kind)
	default:
		fmt.Fprintf(w, "  error     %s: %s\n", kind, term.Escape(r.Error.Message))
	}
	if r.Review.Required {
		fmt.Fprintf(w, "  review    %s\n", term.Escape(cmp.Or(r.Review.Reason, "asked for")))
	} else if r.Review.Reason != "" {
		fmt.Fprintf(w, "  note      %s\n", term.Escape(r.Review.Reason))
	}
	if words := unknownEvents(r.Output); words != "" {
		fmt.Fprintf(w, "  events    %s\n", term.Escape(words))
	}
	if r.Cost != nil && *r.Cost != (envelope.Cost{}) {
		fmt.Fprintf(w, "  cost      %s\n", costWords(*r.Cost))
	}
	if r.Output.Enforcement[envelope.ControlFilesystem] == envelope.LevelPartial {
		fmt.Fprintf(w, "  sandbox   the weaker one, in which an agent can: %s\n", strings.Join(sandbox.Holes(), "; "))
	}
	_, err := fmt.Fprintf(w, "  took      %s\n", r.Time.Wall)
	return err
}

// unknownEvents says how many events of its program mailboxd didn't know, and of which kinds; "" for
// none.
func unknownEvents(o envelope.Output) string {
	var extra struct {
		Unknown map[string]int64 `json:"unknown_events"`
	}
	if json.Unmarshal(o.Extra, &extra) != nil || len(extra.Unknown) == 0 {
		return "" // the agent's own member, or none
	}
	sum := int64(0)
	for _, n := range extra.Unknown {
		sum += n
	}
	kinds := slices.Sorted(maps.Keys(extra.Unknown))
	return fmt.Sprintf("mailboxd does not know %d of its program, of the kinds %s", sum, strings.Join(kinds, ", "))
}

// indented indents a text. On a screen it breaks long lines between words.
func indented(s term.Screen, text string) string {
	text = term.Escape(text)
	if s.Columns == 0 {
		return term.Indent(text)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if begin := line[:len(line)-len(strings.TrimLeft(line, " "))]; term.Width(line)+2 > s.Columns {
			lines[i] = begin + term.WrapIndented(strings.TrimLeft(line, " "), s.Columns-2, len(begin))
		}
	}
	return term.Indent(strings.Join(lines, "\n"))
}

// PrintMetered prints what the last of some runs spent; nothing without a run.
func PrintMetered(w io.Writer, runs []client.Run) error {
	if len(runs) == 0 {
		return nil
	}
	run := runs[len(runs)-1]
	words := "nothing: the agent reported no tokens"
	switch {
	case run.Tokens != nil && run.USDCents != nil:
		words = costWords(envelope.Cost{Tokens: *run.Tokens, USDCents: *run.USDCents})
	case run.Tokens != nil:
		words = fmt.Sprintf("%d tokens; no price was reported", *run.Tokens)
	}
	_, err := fmt.Fprintf(w, "  metered   %s\n", words)
	return err
}
