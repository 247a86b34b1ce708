package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// shutOut is what comes of a run whose agent is not logged in.
func shutOut(j task.Job) task.Outcome {
	return task.Outcome{
		Hold: task.AuthRequired, Exit: task.Exit{Code: 1, Started: time.Now(), Finished: time.Now()},
		Result: envelope.Result{TaskID: j.Task.ID, Status: envelope.Failed, Error: envelope.Error{Kind: envelope.AgentError, Message: "not logged in"}},
	}
}

func TestATaskWhoseAgentIsNotLoggedInWaitsUntilRelease(t *testing.T) {
	e := newEngine(t)
	e.retries = 0
	var in atomic.Bool
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome {
		if !in.Load() {
			return shutOut(j)
		}
		return decision(j, "done")
	}
	e.start()
	e.send("t1", "cli")
	e.await("t1", task.Held)
	e.wantEvent("t1", "task.put_back")
	e.ReevaluateAll() // neither a reload nor a restart is a login
	e.restart()
	e.wantHeld("t1", task.AuthRequired)
	if e.result("t1") != "" {
		t.Errorf("result = %s; want none yet", e.result("t1"))
	}
	e.must(e.Release(t.Context(), "t1", me)) // too early: it is put back once more
	e.until("t1 is put back again", func() bool {
		kinds, _ := e.history("t1")
		return strings.Count(strings.Join(kinds, " "), "task.put_back") == 2
	})
	in.Store(true)
	e.must(e.Release(t.Context(), "t1", me))
	e.await("t1", task.Done)
	e.wantResult("t1", `"status": "ok"`)
}

// A run that did nothing is no failure: all retries are still there.
func TestAPutBackRunDoesNotCountAmongTheAttempts(t *testing.T) {
	e := newEngine(t)
	e.retries = 1
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome {
		switch j.Attempt {
		case 1:
			return shutOut(j)
		case 2:
			o := shutOut(j)
			o.Hold, o.Retry = "", true
			return o
		}
		return decision(j, "done")
	}
	e.start()
	e.send("t1", "cli")
	e.await("t1", task.Held)
	e.must(e.Release(t.Context(), "t1", me))
	e.await("t1", task.Done)
	e.wantResult("t1", `"status": "ok"`)
}

func TestAPutBackTaskEndsAtItsDeadlineAndByCancel(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if !t.Deadline.IsZero() && !now.Before(t.Deadline) {
			return task.Verdict{Findings: envelope.Findings{{Field: "deadline", Message: "is over", Kind: envelope.DeadlineExceeded}}}
		}
		return task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline}}
	}
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome { return shutOut(j) }
	e.start()
	e.send("t1", "cli", `"deadline":"`+time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)+`"`)
	e.send("t2", "cli")
	e.await("t1", task.Done)
	e.wantResult("t1", string(envelope.DeadlineExceeded))
	e.await("t2", task.Held)
	e.must(e.Cancel(t.Context(), "t2", me))
	e.await("t2", task.Done)
	e.wantResult("t2", `"status": "cancelled"`)
}
