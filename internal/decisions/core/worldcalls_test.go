package core_test

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// calls has the agent of a running task ask about a call, or the time for an answer pass.
func (w *world) calls(t *core.Task) {
	if t == nil || t.State != task.Running {
		return
	}
	digest := fmt.Sprintf("call %d of attempt %d", w.pick(3), t.Attempt)
	if w.pick(4) == 0 {
		w.later(&core.ExpireCall{Task: t.Seq, Digest: digest})
		return
	}
	terms := task.Terms{Calls: &task.CallRules{Otherwise: task.AskPerson, Timeout: 20 * time.Second}}
	w.later(&core.AskCall{Task: t.Seq, Attempt: t.Attempt, Digest: digest, Content: []byte(`{}`), Terms: terms})
}

// openCalls returns the digests of the calls about which a person is asked.
func openCalls(t *core.Task) (digests []string) {
	for _, c := range t.Calls {
		if open(c) != nil {
			digests = append(digests, c.Digest)
		}
	}
	return digests
}

// checkCalls checks that a task with an open question about a call runs, and says that it waits.
func (w *world) checkCalls(t *core.Task) {
	asks := len(openCalls(t)) > 0
	switch {
	case asks && t.State != task.Running:
		w.fail("%s is %s, and somebody is asked about a call", t.ID, t.State)
	case t.State == task.Running && asks != slices.Contains(t.Reasons, task.Approval):
		w.fail("%s runs, somebody is asked about a call: %t, and it waits for %v", t.ID, asks, t.Reasons)
	}
	for i, c := range t.Calls {
		if slices.ContainsFunc(t.Calls[:i], func(before *task.Consent) bool { return before.Digest == c.Digest }) {
			w.fail("%s is asked twice about %s", t.ID, c.Digest)
		}
	}
}
