package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/slowtest"
)

// limited is the outcome of a run that reached a limit, until a time.
func limited(j task.Job, until time.Time) task.Outcome {
	tokens := int64(7)
	return task.Outcome{
		Hold: task.ProviderLimit, HoldUntil: until, Exit: task.Exit{Code: 1, Started: time.Now(), Finished: time.Now()},
		Result: envelope.Result{
			TaskID: j.Task.ID, Status: envelope.Failed, Cost: &envelope.Cost{Tokens: tokens, Unpriced: true},
			Error: envelope.Error{Kind: envelope.AgentError, Message: "You've hit your limit"},
		},
	}
}

// limitedUntil makes the agent cli reach a limit until a time. It counts the runs.
func limitedUntil(e *engine, until time.Time) *atomic.Int64 {
	var runs atomic.Int64
	e.opts.LimitPause = schedule.LimitPause{Short: time.Millisecond, First: time.Hour, Longest: time.Hour}
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome {
		runs.Add(1)
		if time.Now().Before(until) {
			return limited(j, until)
		}
		o := decision(j, "done")
		o.Exit.Started = time.Now()
		return o
	}
	return &runs
}

// limitedOnce makes the first run of the agent cli reach a limit that ends a time later. It counts
// the runs, and returns when the limit ends: zero before the first run.
func limitedOnce(e *engine, after time.Duration) (runs *atomic.Int64, ends func() time.Time) {
	var until atomic.Pointer[time.Time]
	runs = limitedUntil(e, time.Time{})
	later := e.plays["cli"]
	e.plays["cli"] = func(ctx context.Context, j task.Job) task.Outcome {
		if end := time.Now().Add(after); until.CompareAndSwap(nil, &end) {
			runs.Add(1)
			return limited(j, end)
		}
		return later(ctx, j)
	}
	return runs, func() time.Time {
		if end := until.Load(); end != nil {
			return *end
		}
		return time.Time{}
	}
}

// sendAtLimit sends a task to the agent cli, and waits until the limit holds it.
func (e *engine) sendAtLimit(id string) {
	e.t.Helper()
	e.send(id, "cli")
	e.await(id, task.Held)
	e.wantHeld(id, task.ProviderLimit)
}

func TestATaskAtALimitOfAProviderIsHeldUntilItEndsAndThenAnswered(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := newEngine(t)
	e.retries = 0
	runs, ends := limitedOnce(e, 2*time.Second)
	e.start()
	e.send("t1", "cli")
	e.await("t1", task.Held)
	until := ends()
	e.wantHeld("t1", task.ProviderLimit)
	e.wantEvent("t1", "task.put_back")
	if row := e.row("t1"); row.Until.Sub(until).Abs() > time.Millisecond { // the clock is adjusted meanwhile
		t.Errorf("held until %v; want %v", row.Until, until)
	}
	e.ReevaluateAll()
	e.await("t1", task.Done)
	e.wantResult("t1", `"status": "ok"`)
	if time.Now().Before(until) || runs.Load() != 2 {
		t.Errorf("%d runs, done at %v; want 2, after %v", runs.Load(), time.Now(), until)
	}
}

func TestTheOtherTasksOfAnAgentAtALimitAreHeldWithoutARun(t *testing.T) {
	e := newEngine(t)
	runs := limitedUntil(e, time.Now().Add(time.Hour))
	e.start()
	e.sendAtLimit("t1")
	e.sendAtLimit("t2")
	e.send("t3", "quick")
	e.await("t3", task.Done)
	e.restart() // the ledger has the limit
	e.sendAtLimit("t4")
	e.wantHeld("t1", task.ProviderLimit)
	if runs.Load() != 1 {
		t.Errorf("%d runs; want 1", runs.Load())
	}
}

func TestReleaseStartsATaskAtALimitAndAnAnswerStartsTheOthers(t *testing.T) {
	e := newEngine(t)
	var over atomic.Bool
	e.opts.LimitPause = schedule.LimitPause{Short: time.Millisecond, First: time.Hour, Longest: time.Hour}
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome {
		if !over.Load() {
			return limited(j, time.Time{})
		}
		o := decision(j, "done")
		o.Exit.Started = time.Now()
		return o
	}
	e.start()
	e.sendAtLimit("t1")
	e.sendAtLimit("t2")
	e.must(e.Release(t.Context(), "t2", me)) // too early: it is held once more
	e.until("t2 is put back", func() bool { return e.row("t2").Attempt == 1 && e.row("t2").State == task.Held })
	e.wantHeld("t1", task.ProviderLimit)
	over.Store(true)
	e.must(e.Release(t.Context(), "t2", me))
	e.await("t2", task.Done)
	e.await("t1", task.Done)
	e.wantResult("t1", `"status": "ok"`)
}

func TestResumeEndsTheLimitOfAnAgent(t *testing.T) {
	e := newEngine(t)
	var over atomic.Bool
	e.opts.LimitPause = schedule.LimitPause{Short: time.Millisecond, First: time.Hour, Longest: time.Hour}
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome {
		if !over.Load() {
			return limited(j, time.Time{})
		}
		return decision(j, "done")
	}
	e.start()
	e.sendAtLimit("t1")
	over.Store(true)
	e.must(e.Resume(t.Context(), "cli", me))
	e.await("t1", task.Done)
}

// A run at a limit counts neither as an attempt nor as a failure, and costs what it costs.
func TestALimitUsesUpNoRetryButTheBudget(t *testing.T) {
	e := newEngine(t)
	e.retries = 1
	e.opts.LimitPause = schedule.LimitPause{Short: time.Millisecond, First: time.Millisecond, Longest: time.Millisecond}
	e.plays["cli"] = func(_ context.Context, j task.Job) task.Outcome {
		switch j.Attempt {
		case 1, 2:
			return limited(j, time.Time{})
		case 3:
			o := limited(j, time.Time{})
			o.Hold, o.Retry = "", true
			return o
		}
		return decision(j, "done")
	}
	e.start()
	e.send("t1", "cli")
	e.await("t1", task.Done)
	e.wantResult("t1", `"status": "ok"`)
	runs, err := e.parts.Ledger.Runs(t.Context(), e.row("t1").Seq)
	e.must(err)
	if len(runs) != 4 || runs[0].Cause != task.CausePutBack || runs[0].Tokens == nil || *runs[0].Tokens != 7 {
		t.Errorf("runs = %+v; want four, the first put back with its 7 tokens", runs)
	}
}

func TestATaskAtALimitEndsAtItsDeadlineAndByCancel(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if !t.Deadline.IsZero() && !now.Before(t.Deadline) {
			return task.Verdict{Findings: envelope.Findings{{Field: "deadline", Message: "is over", Kind: envelope.DeadlineExceeded}}}
		}
		return task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline}}
	}
	limitedUntil(e, time.Now().Add(time.Hour))
	e.start()
	e.send("t1", "cli", `"deadline":"`+time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)+`"`)
	e.send("t2", "cli")
	e.await("t1", task.Done)
	e.wantResult("t1", string(envelope.DeadlineExceeded))
	e.await("t2", task.Held)
	e.wantHeld("t2", task.ProviderLimit)
	e.must(e.Cancel(t.Context(), "t2", me))
	e.await("t2", task.Done)
}

// A task that a person approved keeps its approval while it waits.
func TestAnApprovedTaskAtALimitGoesOnWithoutAnotherApproval(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: "d"}
	}
	limitedOnce(e, 100*time.Millisecond)
	e.start()
	e.send("t1", "cli")
	e.await("t1", task.Held)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", `"status": "ok"`)
	e.wantEvent("t1", "task.put_back")
	e.wantDecisions("t1", task.Approved)
}
