package dispatch_test

import (
	"context"
	"testing"
	"time"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// crowded starts an engine with one slot, which a task "busy" has, while the
// next one, "ready", has its intent already. Release lets "busy" end.
func crowded(t *testing.T) (e *engine, release func()) {
	t.Helper()
	e = newEngine(t)
	gate := make(chan struct{})
	e.dirs, e.opts.Workers = true, 1
	e.plays["paced"] = func(ctx context.Context, j task.Job) task.Outcome {
		if ctx.Err() != nil {
			o := cut(ctx)
			o.Retry = true
			return o
		}
		if j.Task.ID == "busy" {
			<-gate
		}
		o := decision(j, "done")
		o.Exit = task.Exit{PID: 1, Started: time.Now(), Wall: time.Millisecond}
		return o
	}
	e.start()
	e.send("first", "paced")
	e.await("first", task.Done)
	e.send("busy", "paced")
	e.await("busy", task.Running)
	e.send("ready", "paced")
	return e, func() { close(gate) }
}

func TestAPausePutsBackWhatIsReadyAheadOfItsSlot(t *testing.T) {
	e, release := crowded(t)
	e.must(e.Pause(t.Context(), "paced", core.By{Who: "me"}))
	e.await("ready", task.Held)
	e.wantHeld("ready", task.Paused)
	release()
	e.await("busy", task.Done)
	e.must(e.Resume(t.Context(), "paced", core.By{Who: "me"}))
	e.await("ready", task.Done)
}

func TestWhatIsReadyAheadOfItsSlotCanBeCancelled(t *testing.T) {
	e, release := crowded(t)
	e.must(e.Cancel(t.Context(), "ready", core.By{Who: "me"}))
	if row := e.await("ready", task.Done); row.Kind != "cancelled" {
		t.Errorf("ready ended as %s; want cancelled", row.Kind)
	}
	release()
	e.await("busy", task.Done)
}

func TestWhatIsReadyAheadOfItsSlotIsQueuedAgainWhenWeStop(t *testing.T) {
	e, release := crowded(t)
	release()
	e.restart()
	e.await("ready", task.Done)
	if runs, err := e.parts.Ledger.Runs(t.Context(), e.row("ready").Seq); err != nil || len(runs) != 1 {
		t.Errorf("ready has %d runs, %v; want 1, for an intent that came to nothing is none", len(runs), err)
	}
}
