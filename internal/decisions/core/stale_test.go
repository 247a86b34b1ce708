package core_test

import (
	"errors"
	"testing"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestAnUnreadableAnswerHoldsOnlyTheRunThatGaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		row  task.Task
		want error
	}{
		"its run":           {task.Task{Seq: 1, ID: "t", State: task.Running, Attempt: 1}, nil},
		"a later attempt":   {task.Task{Seq: 1, ID: "t", State: task.Running, Attempt: 2}, core.ErrStale},
		"a task at its end": {task.Task{Seq: 1, ID: "t", State: task.Done, Attempt: 1}, core.ErrStale},
		"an unknown task":   {task.Task{Seq: 2, ID: "u", State: task.Running, Attempt: 1}, core.ErrStale},
	} {
		c.row.Revision, c.row.Latest = 1, true
		state := core.NewState(core.Task{Task: c.row})
		if _, err := core.Decide(state, &core.KeepUnread{Task: 1, Attempt: 1}, core.Config{}, time.Unix(9, 0)); !errors.Is(err, c.want) {
			t.Errorf("%s: Decide(KeepUnread) = %v; want %v", name, err, c.want)
		}
	}
}

// A command refers to the state that its caller saw. A claim of a task in an inbox changes only
// the lease.
func TestACommandAboutATaskThatHasChangedIsStale(t *testing.T) {
	later := time.Unix(99, 0)
	for name, c := range map[string]struct {
		state  task.State
		change func(*task.Task)
		stale  bool
	}{
		"nothing":                       {task.Waiting, func(*task.Task) {}, false},
		"it was claimed":                {task.Waiting, func(t *task.Task) { t.Until = later }, true},
		"its hold ends at another time": {task.Held, func(t *task.Task) { t.Until = later }, false},
		"it is held for another reason": {task.Held, func(t *task.Task) { t.Reasons = []task.Reason{task.Approval} }, true},
		"it is at another attempt":      {task.Waiting, func(t *task.Task) { t.Attempt = 2 }, true},
		"it is with another agent":      {task.Waiting, func(t *task.Task) { t.Agent = "b" }, true},
		"it is in another state":        {task.Waiting, func(t *task.Task) { t.State = task.Queued }, true},
	} {
		saw := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: c.state, Attempt: 1, Agent: "a"}
		now := saw
		c.change(&now)
		state := core.NewState(core.Task{Task: now})
		_, err := core.Decide(state, &core.Cancel{Task: 1, Seen: core.See(saw)}, core.Config{}, time.Unix(9, 0))
		if (err != nil) != c.stale {
			t.Errorf("%s: Decide(Cancel) = %v; want it stale: %t", name, err, c.stale)
		}
	}
}
