package main

import (
	"cmp"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// talks are in which words and in which conversation a task was asked for.
func (f *caseFile) talks(s screen) {
	if f.Talk == nil {
		return
	}
	s.line("  dialect    %s", cmp.Or(flat(f.Task.Dialect), string(envelope.AINL)))
	for _, fact := range []struct{ format, value string }{
		{"  thread     %s", f.Talk.Thread}, {"  trace      %s", f.Talk.Trace}, {"  tie        %s", f.Talk.Tie},
	} {
		if fact.value != "" {
			s.line(fact.format, flat(fact.value))
		}
	}
}

// told is what was said about the task, by whom to whom, and where what is for an
// inbox lies; nil when nothing was said.
func (f *caseFile) told() *table {
	if len(f.Said) == 0 {
		return nil
	}
	told := &table{weights: []int{0, 1, 1, 1, 2}}
	for _, m := range f.Said {
		where := ""
		switch {
		case m.Inbox != "" && m.Posted.IsZero():
			where = "for " + flat(m.Inbox) + ", not there yet"
		case m.Inbox != "":
			where = "in " + flat(m.Inbox)
		case m.Via == string(task.ByDaemon):
			where = "for nobody's inbox"
		}
		if len(m.Lost) > 0 {
			where = strings.TrimPrefix(where+", without "+flat(strings.Join(m.Lost, ", ")), ", ")
		}
		told.add(cell{"  " + stamp(m.Time), faint}, cell{text: flat(m.Act)}, cell{text: flat(m.From + " to " + cmp.Or(m.To, "nobody"))},
			cell{text: where}, cell{text: said(m.Text)})
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
