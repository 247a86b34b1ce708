package task_test

import (
	"testing"

	"mailboxd/internal/decisions/task"
)

func TestWhySaysOfEachReasonWhatAPersonCanDo(t *testing.T) {
	words := map[task.Reason]string{
		task.Approval:      "it needs an approval: mailboxd approve",
		task.ChangeWindow:  "its change window has not begun",
		task.Capacity:      "it is tried again after a pause",
		task.Paused:        "its agent is paused: mailboxd resume",
		task.Operator:      "an operator holds it: mailboxd release",
		task.Recovered:     "it may have run before the ledger was lost or restored: mailboxd release runs it",
		task.AuthRequired:  "its agent needs a login, then: mailboxd release",
		task.ProviderLimit: "the provider of its agent reached a usage limit, or is overloaded: mailboxd release tries at once",
		task.AnswerUnread:  "its agent has ended, and its answer can't be read: mailboxd release reads it again",
		task.ResultInvalid: "results/t1.json is no result for it: correct or remove the file",
		task.Children:      "its agent waits for the tasks that it delegated",
		task.Reply:         "its agent asked a question: mailboxd reply",
		task.After:         "it waits for the end of another task",
		task.SameCommand:   "another task carries out the same command",
		task.Routing:       "its agent is not chosen yet: mailboxd route explain",
		task.Unreachable:   "the runner that has it can't be reached: mailboxd runners, or mailboxd cancel --abandon",
		task.NoRunner:      "no runner with room may have it: mailboxd runners",
		task.RunDirectory:  "something else is at the path of its run directories: move it away, then mailboxd release",
	}
	for _, r := range task.Reasons() {
		if got := r.Facts().WhyOf("t1"); got != words[r] {
			t.Errorf("a task held for %s: %q; want %q", r, got, words[r])
		}
	}
}
