package core

import (
	"time"

	"mailboxd/internal/decisions/task"
)

// NoteReach records whether the runner of a running task can be reached. The run goes on either way. It does
// nothing if that was recorded before.
type NoteReach struct {
	Task      int64
	Attempt   int
	Reachable bool
	Until     time.Time // when the run counts as lost without an answer; zero: never
}

func (c *NoteReach) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running || t.Attempt != c.Attempt || t.Run == nil || !t.Run.At.IsRemote() {
		return ErrStale
	}
	kind, data := task.KindRunReachable, map[string]any{"attempt": t.Attempt, "runner": t.Run.At.Runner}
	if !c.Reachable {
		kind = task.KindRunUnreachable
		if !c.Until.IsZero() {
			data["until"] = formatTime(c.Until)
		}
	}
	d.mark(t, task.Unreachable, !c.Reachable, kind, data)
	return nil
}
