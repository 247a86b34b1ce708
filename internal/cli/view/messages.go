package view

import (
	"cmp"
	"strings"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// messageTable lists the messages about the task, and the inboxes that they are in; nil
// without messages.
func (f *Details) messageTable() *term.Table {
	if len(f.Messages) == 0 {
		return nil
	}
	table := &term.Table{Weights: []int{0, 1, 1, 1, 2}}
	for _, m := range f.Messages {
		where := ""
		switch {
		case m.Inbox != "" && m.Posted.IsZero():
			where = "for " + term.OneLine(m.Inbox) + ", not there yet"
		case m.Inbox != "":
			where = "in " + term.OneLine(m.Inbox)
		case m.Via == string(task.ByDaemon):
			where = "for nobody's inbox"
		}
		if len(m.Lost) > 0 {
			where = strings.TrimPrefix(where+", without "+term.OneLine(strings.Join(m.Lost, ", ")), ", ")
		}
		table.Add(term.Cell{Text: "  " + term.Stamp(m.Time), Paint: term.Faint}, term.Cell{Text: term.OneLine(m.Act)}, term.Cell{Text: term.OneLine(m.From + " to " + cmp.Or(m.To, "nobody"))},
			term.Cell{Text: where}, term.Cell{Text: quotedOrEmpty(m.Text)})
	}
	return table
}

// quotedOrEmpty quotes a text; "" for an empty one.
func quotedOrEmpty(text string) string {
	if text == "" {
		return ""
	}
	return quoted(text)
}
