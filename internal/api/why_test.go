package api

import (
	"testing"

	"mailboxd/internal/task"
)

func TestWhySaysOfEachReasonWhatAPersonCanDo(t *testing.T) {
	words := map[task.Reason]string{
		task.Approval:      "a person has to approve it: mailboxd approve",
		task.ChangeWindow:  "its change window has not begun",
		task.Capacity:      "it is tried again after a pause",
		task.Paused:        "its agent is paused: mailboxd resume",
		task.Operator:      "an operator holds it: mailboxd release",
		task.Recovered:     "it may have run before the ledger was lost: mailboxd release runs it",
		task.AuthRequired:  "its agent has to be logged in, then: mailboxd release",
		task.AnswerUnread:  "its agent has ended and what it answered cannot be read: mailboxd release reads it again",
		task.ResultInvalid: "results/t1.json is no result for it: mend or remove that file",
		task.Children:      "its agent waits for what it asked others for",
		task.Reply:         "its agent has asked something: mailboxd reply",
	}
	for _, r := range task.Reasons() {
		if got := whyHeldFor(task.Task{ID: "t1"}, r); got != words[r] {
			t.Errorf("a task held for %s: %q; want %q", r, got, words[r])
		}
	}
}
