package core_test

import (
	"testing"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A reservation that is settled, or that no run has, can't be spent by tasks below it.
func TestARunLendsItsReservationWhileItLasts(t *testing.T) {
	run := task.Run{Task: 1, Attempt: 1}
	settled := run
	settled.Settled = true
	for name, c := range map[string]struct {
		state task.State
		run   task.Run
		want  bool
	}{
		"it runs":             {task.Running, run, true},
		"it is in an inbox":   {task.Waiting, run, true},
		"it is held":          {task.Held, run, false},
		"it is done":          {task.Done, run, false},
		"it is settled":       {task.Running, settled, false},
		"there is no run yet": {task.Waiting, task.Run{}, false},
	} {
		a := core.Ancestor{Task: task.Task{Seq: 1, State: c.state}, Run: c.run}
		if got := a.Lends(); got != c.want {
			t.Errorf("%s: Lends = %t; want %t", name, got, c.want)
		}
	}
}
