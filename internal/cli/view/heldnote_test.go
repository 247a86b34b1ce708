package view

import (
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

func TestTheNoteOfAHeldTaskKnowsThatTheCallerRequestedIt(t *testing.T) {
	held := client.Task{ID: "0123456789abcdef", State: task.Held, Held: []task.Reason{task.Approval}}
	for own, want := range map[string]string{
		"":        "next: mailboxd approve 0123, or mailboxd deny 0123",
		"refuse":  "next: another approver must decide, since you requested this task",
		"confirm": "next: you requested this task: confirm at a terminal with mailboxd approve 0123",
		"allow":   "next: mailboxd approve 0123, or mailboxd deny 0123",
	} {
		around := WaitContext{Asked: map[envelope.ID]client.Approval{held.ID: {Asked: time.Now(), Own: own}}}
		if got := around.HeldNote(held, "0123"); !strings.Contains(got, want) {
			t.Errorf("own %q: %q; want %q in it", own, got, want)
		}
	}
}
