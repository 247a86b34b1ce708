package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

var me = core.By{Who: "ada", Reason: "looks wrong"}

// wantState fails the test when an error is no *core.StateError.
func wantState(t *testing.T, err error, words string) {
	t.Helper()
	if _, ok := errors.AsType[*core.StateError](err); !ok || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v; want a state error with %q", err, words)
	}
}

func TestCancelEndsWhatHasNotStartedAtOnce(t *testing.T) {
	e := startEngine(t)
	e.judge = func(envelope.Task, time.Time) task.Verdict {
		return task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}}
	}
	e.send("held", "quick")
	e.must(e.Cancel(t.Context(), "held", me))
	row := e.await("held", task.Done)
	if row.Status != envelope.Stopped || row.Kind != envelope.Cancelled || row.Attempt != 0 {
		t.Errorf("held = %s (%s), attempt %d; want cancelled (cancelled), 0", row.Status, row.Kind, row.Attempt)
	}
	e.wantResult("held", `"cancelled"`, "cancelled by ada: looks wrong")
	e.wantEvent("held", "task.cancelled")
	wantState(t, e.Cancel(t.Context(), "held", me), "done already (cancelled)")
	if err := e.Cancel(t.Context(), "nobody", me); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Cancel(nobody) = %v; want ErrUnknown", err)
	}
}

func TestCancelEndsARunAndWaitsUntilItIsGone(t *testing.T) {
	e := newEngine(t)
	gone := false
	e.plays["slow"] = func(ctx context.Context, j task.Job) task.Outcome {
		o := slow(ctx, j)
		gone = true
		return o
	}
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Running)
	e.must(e.Cancel(t.Context(), "t1", me))
	if row := e.row("t1"); !gone || row.State != task.Done || row.Status != envelope.Stopped {
		t.Errorf("after Cancel: gone %v, %s (%s); want the run gone and the task cancelled", gone, row.State, row.Status)
	}
	e.wantResult("t1", `"cancelled"`, "cancelled by ada: looks wrong")
	e.wantEvent("t1", "task.cancelled")
}

func TestARunThatEndsByItselfKeepsItsEndInSpiteOfCancel(t *testing.T) {
	e := newEngine(t)
	e.plays["slow"] = func(ctx context.Context, j task.Job) task.Outcome {
		<-ctx.Done()
		return decision(j, "just done")
	}
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Running)
	wantState(t, e.Cancel(t.Context(), "t1", me), "done already (ok)")
	e.await("t1", task.Done)
	e.wantResult("t1", "just done")
}

func TestCancelTakesTheRunAndWhatWaitsBehindIt(t *testing.T) {
	e := startEngine(t)
	e.send("t1", "slow")
	e.await("t1", task.Running)
	e.send("t1", "slow", `"deadline":"2999-01-01T00:00:00Z"`)
	e.must(e.Cancel(t.Context(), "t1", me))
	rows, err := e.parts.Ledger.Revisions(t.Context(), "t1")
	e.must(err)
	for _, row := range rows {
		if row.State != task.Done || row.Status != envelope.Stopped {
			t.Errorf("revision %d is %s (%s); want done (cancelled)", row.Revision, row.State, row.Status)
		}
	}
	if len(rows) != 2 {
		t.Errorf("%d revisions; want 2", len(rows))
	}
}

func TestAnOperatorsHoldOutlastsVerdictsRevisionsAndRestarts(t *testing.T) {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.wantHeld("t1", task.Paused)
	e.must(e.Hold(t.Context(), "t1", me))
	e.wantHeld("t1", task.Paused, task.Operator)
	e.must(e.Resume(t.Context(), "quick", me)) // judges the task anew
	e.wantHeld("t1", task.Operator)
	e.restart()
	e.Look(t.Context())
	e.wantHeld("t1", task.Operator)
	e.send("t1", "quick", `"deadline":"2999-01-01T00:00:00Z"`) // the next revision
	e.wantHeld("t1", task.Operator)
	e.must(e.Release(t.Context(), "t1", me))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
	e.wantEvent("t1", "task.released")
	wantState(t, e.Release(t.Context(), "t1", me), "done already")
	wantState(t, e.Hold(t.Context(), "t1", me), "done already")
}

func TestReleaseNeverLiftsAnApproval(t *testing.T) {
	e := startEngine(t)
	e.judge = func(envelope.Task, time.Time) task.Verdict {
		return task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}}
	}
	e.send("t1", "quick")
	wantState(t, e.Release(t.Context(), "t1", me), "held (approval)")
	e.must(e.Hold(t.Context(), "t1", me))
	e.must(e.Release(t.Context(), "t1", me))
	e.wantHeld("t1", task.Approval)
}

func TestAHoldBehindARunKeepsTheNextRevisionFromStarting(t *testing.T) {
	e := newEngine(t)
	goOn := make(chan struct{})
	e.plays["slow"] = func(ctx context.Context, j task.Job) task.Outcome { <-goOn; return decision(j, "done") }
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Running)
	wantState(t, e.Hold(t.Context(), "t1", me), "running")
	e.send("t1", "slow", `"deadline":"2999-01-01T00:00:00Z"`)
	e.must(e.Hold(t.Context(), "t1", me))
	close(goOn)
	e.await("t1", task.Held)
	e.wantHeld("t1", task.Operator)
}

func TestAHeldTaskIsStillRefusedAtItsDeadline(t *testing.T) {
	e := newEngine(t)
	var late atomic.Bool
	e.judge = func(asked envelope.Task, now time.Time) task.Verdict {
		if !late.Load() {
			return task.Verdict{Admit: true, Hold: []task.Reason{task.ChangeWindow}, Until: now.Add(50 * time.Millisecond)}
		}
		return task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is past"}}}
	}
	e.start()
	e.send("t1", "quick")
	e.must(e.Hold(t.Context(), "t1", me))
	late.Store(true)
	if row := e.await("t1", task.Done); row.Kind != envelope.DeadlineExceeded {
		t.Errorf("t1 ended as %s; want deadline_exceeded", row.Kind)
	}
}

func TestRetryRunsAFailedTaskAgainAsTheNextRevision(t *testing.T) {
	e := newEngine(t)
	e.plays["broken"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "hopeless")
		if j.Revision == 1 {
			o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: envelope.AgentError, Message: "no"}
		}
		return o
	}
	e.start()
	e.send("t1", "broken")
	first := e.await("t1", task.Done)
	e.must(e.Retry(t.Context(), "t1", me))
	e.until("the second revision is done", func() bool { row := e.row("t1"); return row.Revision == 2 && row.Put })
	e.wantResult("t1", "hopeless, revision 2", `"ok"`)
	if row := e.row("t1"); row.Hash != first.Hash {
		t.Errorf("the retry has hash %s; want that of the request, %s", row.Hash, first.Hash)
	}
	old, err := e.parts.State.History("t1", 1)
	if err != nil || !strings.Contains(string(old), "hopeless, revision 1") {
		t.Errorf("history = %s, %v; want the first result", old, err)
	}
	e.wantEvent("t1", "task.resubmitted")
	wantState(t, e.Retry(t.Context(), "t1", me), "done already (ok)")
	e.send("t1", "broken") // the same content as the latest revision
	if row := e.row("t1"); row.Revision != 2 {
		t.Errorf("sent again after the retry: revision %d; want a duplicate of 2", row.Revision)
	}
}

func TestRetryOfWhatIsStillRefusedChangesNothing(t *testing.T) {
	e := startEngine(t)
	refuse := func(envelope.Task, time.Time) task.Verdict {
		return task.Verdict{Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Field: "target_agent", Message: "is nobody"}}}
	}
	admit := e.judge
	e.judge = refuse
	e.send("t1", "quick")
	if err := e.Retry(t.Context(), "t1", me); err == nil || !strings.Contains(err.Error(), "still refused: target_agent: is nobody") {
		t.Errorf("Retry() = %v; want why it is still refused", err)
	}
	if row := e.row("t1"); row.Revision != 1 || row.Status != envelope.Rejected {
		t.Errorf("t1 = revision %d, %s; want revision 1, rejected", row.Revision, row.Status)
	}
	e.judge = admit // as after a reload
	e.must(e.Retry(t.Context(), "t1", me))
	e.until("it ran", func() bool { return e.row("t1").Status == envelope.OK })
}

func TestACancelledTaskThatRanIsNotSaidToHaveRunNothing(t *testing.T) {
	e := newEngine(t)
	paused := make(chan struct{})
	e.plays["busy"] = func(_ context.Context, j task.Job) task.Outcome {
		<-paused
		o := decision(j, "later")
		o.Retry, o.Exit.Started = true, time.Now()
		return o
	}
	e.start()
	e.send("t1", "busy")
	e.await("t1", task.Running)
	e.must(e.Pause(t.Context(), "busy", me))
	close(paused)
	e.until("its next attempt waits", func() bool { return slices.Contains(e.row("t1").Reasons, task.Paused) })
	e.must(e.Cancel(t.Context(), "t1", me))
	e.wantResult("t1", "Cancelled before another attempt")
}
