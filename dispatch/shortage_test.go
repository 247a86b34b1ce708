package dispatch_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// A run that never began for want of disk or files says nothing of its task,
// and costs it no attempt of its retries.
func TestATaskThatCouldNotBeStartedForWantOfSomethingStartsLater(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := newEngine(t)
	tries := 0
	e.plays["starved"] = func(_ context.Context, j task.Job) task.Outcome {
		if tries++; tries < 3 {
			return task.Outcome{Void: &os.PathError{Op: "open", Path: "request.json", Err: syscall.EMFILE}}
		}
		return decision(j, "done at last")
	}
	e.start()
	e.send("t1", "starved")
	e.await("t1", task.Done)
	e.wantResult("t1", "done at last")
	runs, err := e.parts.Ledger.Runs(t.Context(), e.row("t1").Seq)
	if err != nil || len(runs) != 1 {
		t.Errorf("runs = %+v, %v; want the one that began", runs, err)
	}
	if n := e.log.count("tasks cannot be started; trying again"); n != 1 {
		t.Errorf("complained %d times; want once\n%s", n, e.log.String())
	}
	if e.log.count("ulimit -n") != 1 {
		t.Errorf("the log does not have the hint:\n%s", e.log.String())
	}
}

// Nobody may know when the next attempt is: the task is held meanwhile.
func TestATaskGetsTheBudgetOfARunThatNeverBegan(t *testing.T) {
	e := newEngine(t)
	e.judge = sharing(100)
	reserved := make(chan struct{})
	e.plays["starved"] = func(context.Context, task.Job) task.Outcome {
		<-reserved
		return task.Outcome{Void: errors.New("no room")}
	}
	e.start()
	e.send("first", "starved", budget(80))
	e.await("first", task.Running)
	e.send("second", "quick", budget(80))
	e.await("second", task.Held)
	close(reserved)
	e.await("first", task.Queued)
	e.must(e.Hold(t.Context(), "first", me))
	e.await("second", task.Done)
	e.wantHeld("first", task.Operator)
}

// The run gives its reservation back at once, and not after the pause.
func TestATaskGetsTheBudgetOfARunThatNeverBeganBeforeItsNextAttempt(t *testing.T) {
	e := newEngine(t)
	e.judge = sharing(100)
	reserved, tries := make(chan struct{}), 0
	e.plays["starved"] = func(_ context.Context, j task.Job) task.Outcome {
		if tries++; tries == 1 {
			<-reserved
			return task.Outcome{Void: errors.New("no room")}
		}
		return spent(j, 1)
	}
	e.start()
	e.send("first", "starved", budget(80))
	e.await("first", task.Running)
	e.send("second", "quick", budget(80))
	e.await("second", task.Held)
	close(reserved)
	e.await("first", task.Done)
	e.await("second", task.Done)
	if first, second := e.row("first").Finished, e.row("second").Finished; second.After(first) {
		t.Errorf("the second ended at %s, the first at %s; want it in the pause of the first", second, first)
	}
}

// The pause before its next attempt is of a task, and not of what replaces it.
func TestANewRevisionDoesNotWaitForThePauseOfARunThatNeverBegan(t *testing.T) {
	e := newEngine(t)
	began := make(chan struct{})
	e.plays["starved"] = func(_ context.Context, j task.Job) task.Outcome {
		if j.Revision == 1 {
			<-began
			return task.Outcome{Void: errors.New("no room")}
		}
		return decision(j, "done")
	}
	e.start()
	e.send("t1", "starved")
	e.await("t1", task.Running)
	e.send("t1", "starved", `"metadata":{"n":2}`)
	e.until("the second revision waits", func() bool { return e.row("t1").State == task.Received })
	let := time.Now()
	close(began)
	row := e.await("t1", task.Done)
	if took := row.Finished.Sub(let); row.Revision != 2 || took >= store.RetryPause {
		t.Errorf("revision %d ended after %s; want the second, in less than the pause of the first", row.Revision, took)
	}
	e.must(e.Idle(t.Context()))
}
