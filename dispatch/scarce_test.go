package dispatch_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"mailboxd/internal/task"
)

// A run that never began for want of disk or files says nothing of its task,
// and costs it no attempt of its retries.
func TestATaskThatCouldNotBeStartedForWantOfSomethingStartsLater(t *testing.T) {
	e := newEngine(t)
	tries := 0
	e.plays["starved"] = func(_ context.Context, j task.Job) task.Outcome {
		if tries++; tries < 3 {
			return task.Outcome{Void: &os.PathError{Op: "open", Path: "request.json", Err: syscall.EMFILE}}
		}
		return answer(j, "done at last")
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
		t.Errorf("the log does not say the mend:\n%s", e.log.String())
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
