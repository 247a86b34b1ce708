package view_test

import (
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

func TestProgressIsWhatTheRunningAgentReportedLast(t *testing.T) {
	started := client.Event{Kind: task.KindTaskStarted}
	report := func(data string) client.Event { return client.Event{Kind: task.KindTaskProgress, Data: []byte(data)} }
	for _, tc := range []struct {
		events        []client.Event
		percent, note string
	}{
		{nil, "", ""},
		{[]client.Event{started}, "", ""},
		{[]client.Event{report(`{"pct":10}`), started}, "", ""},
		{[]client.Event{started, report(`{"pct":10,"note":"reads"}`), report(`{"pct":40.4,"note":"writes\u001b[2J\n"}`)}, "40%", `writes\u001b[2J`},
		{[]client.Event{started, report(`{"pct":1e300}`)}, "100%", ""},
		{[]client.Event{started, report(`{"pct":-1,"note":7}`)}, "0%", ""},
		{[]client.Event{started, report(`{"note":"reads"}`)}, "", "reads"},
	} {
		percent, note := (&view.Details{TaskDetails: client.TaskDetails{Events: tc.events}}).Progress()
		if percent != tc.percent || note != tc.note {
			t.Errorf("Progress of %v = %q, %q; want %q, %q", tc.events, percent, note, tc.percent, tc.note)
		}
	}
}
