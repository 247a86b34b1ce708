package main

import (
	"cmp"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

// talks are in which words and in which conversation a task was asked for.
func (f *caseFile) talks(s term.Screen) {
	if f.Talk == nil {
		return
	}
	s.Line("  dialect    %s", cmp.Or(term.OneLine(f.Task.Dialect), string(envelope.AINL)))
	for _, fact := range []struct{ format, value string }{
		{"  thread     %s", f.Talk.Thread}, {"  trace      %s", f.Talk.Trace}, {"  tie        %s", f.Talk.Tie},
	} {
		if fact.value != "" {
			s.Line(fact.format, term.OneLine(fact.value))
		}
	}
}

// told is what was said about the task, by whom to whom, and where what is for an
// inbox lies; nil when nothing was said.
func (f *caseFile) told() *term.Table {
	if len(f.Said) == 0 {
		return nil
	}
	told := &term.Table{Weights: []int{0, 1, 1, 1, 2}}
	for _, m := range f.Said {
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
		told.Add(term.Cell{Text: "  " + term.Stamp(m.Time), Paint: term.Faint}, term.Cell{Text: term.OneLine(m.Act)}, term.Cell{Text: term.OneLine(m.From + " to " + cmp.Or(m.To, "nobody"))},
			term.Cell{Text: where}, term.Cell{Text: said(m.Text)})
	}
	return told
}

// said is a text that may be missing.
func said(text string) string {
	if text == "" {
		return ""
	}
	return quoted(text)
}
