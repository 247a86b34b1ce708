package dispatch_test

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

func TestAnAnswerThatCannotBeReadIsReadAgainForAQuarterOfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, reads := time.Now(), 0
		dispatch.TryReading(t.Context(), func() bool { reads++; return false })
		if took := time.Since(began); took < 15*time.Minute || took > 16*time.Minute || reads < 15 || reads > 30 {
			t.Errorf("read %d times in %v; want 15 to 30 times in 15 minutes", reads, took)
		}
		reads = 0
		dispatch.TryReading(t.Context(), func() bool { reads++; return reads == 3 })
		if reads != 3 {
			t.Errorf("read %d times; want no more than it took", reads)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dispatch.TryReading(ctx, func() bool { t.Error("read although the daemon stops"); return true })
	})
}

var errBadDisk = &fs.PathError{Op: "read", Path: "result.json", Err: unix.EIO}

// unreadEngine has an agent "a" whose answer cannot be read, as long as disk is bad.
func unreadEngine(t *testing.T) (e *engine, executions *atomic.Int32, repair func()) {
	e = newEngine(t)
	e.dirs, e.givesUp = true, true
	executions = new(atomic.Int32)
	var good atomic.Bool
	unread := task.Outcome{Unread: errBadDisk, Exit: task.Exit{PID: 1, OutputBytes: 1}}
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		executions.Add(1)
		if good.Load() {
			return decision(j, "done")
		}
		return unread
	}
	e.recovers = func(context.Context) task.Outcome {
		if !good.Load() {
			return unread
		}
		o := decision(task.Job{Task: envelope.Task{ID: "t1", Agent: "a"}, Revision: 1}, "read at last")
		o.Exit.PID = 1
		return o
	}
	return e, executions, func() { good.Store(true) }
}

func (e *engine) release(id string) {
	e.t.Helper()
	e.must(e.Release(e.t.Context(), envelope.ID(id), core.By{Who: "tester"}))
}

func TestATaskWhoseAnswerStaysUnreadIsHeldUntilItsReleaseReadsIt(t *testing.T) {
	for name, restart := range map[string]bool{"in one life": false, "across a restart": true} {
		t.Run(name, func(t *testing.T) {
			e, executions, repair := unreadEngine(t)
			e.start()
			e.send("t1", "a")
			e.await("t1", task.Held)
			e.wantHeld("t1", task.AnswerUnread)
			if _, data := e.history("t1"); !strings.Contains(data, "read result.json: input/output error") {
				t.Errorf("the events say %s; want the error", data)
			}
			if _, known, err := runner.ReadExit(e.parts.State.RunDir("t1", 1, 1)); !known || err != nil {
				t.Errorf("exit.json: %v, %v; want that it is there", known, err)
			}
			if restart {
				e.restart()
			}
			e.release("t1")
			e.until("it is held again", func() bool {
				kinds, _ := e.history("t1")
				return strings.Count(strings.Join(kinds, " "), "task.held") == 2
			})
			e.wantHeld("t1", task.AnswerUnread)
			repair()
			e.release("t1")
			e.await("t1", task.Done)
			e.wantResult("t1", "read at last")
			if n := executions.Load(); n != 1 {
				t.Errorf("executed %d times; want once", n)
			}
		})
	}
}

func TestAReleaseNeverRunsAgainWhatHasNoOutputFile(t *testing.T) {
	e, executions, repair := unreadEngine(t)
	e.start()
	e.send("t1", "a")
	e.await("t1", task.Held)
	if _, err := os.Lstat(e.parts.State.RunDir("t1", 1, 1) + "/" + runner.StdoutFile); err == nil {
		t.Fatal("the run has an output file")
	}
	repair()
	e.release("t1")
	e.await("t1", task.Done)
	if n := executions.Load(); n != 1 {
		t.Errorf("executed %d times; want once", n)
	}
}

func TestARevisionWaitsForAnAnswerThatCannotBeRead(t *testing.T) {
	e, _, repair := unreadEngine(t)
	e.start()
	e.send("t1", "a")
	e.await("t1", task.Held)
	e.send("t1", "a", `"x":1`)
	e.await("t1", task.Received)
	repair()
	e.release("t1")
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
	if rows, err := e.parts.Ledger.Revisions(t.Context(), "t1"); err != nil || rows[0].Status != envelope.OK {
		t.Errorf("revision 1 ended as %v, %v; want ok", rows[0].Status, err)
	}
}

func TestAnAnswerThatCannotBeReadCanBeCancelledOrReplacedByHand(t *testing.T) {
	e, _, _ := unreadEngine(t)
	e.start()
	for _, id := range []string{"t1", "t2"} {
		e.send(id, "a")
		e.await(id, task.Held)
	}
	e.must(e.Cancel(t.Context(), "t1", core.By{Who: "tester"}))
	e.await("t1", task.Done)
	e.wantResult("t1", `"cancelled"`)
	e.putResult("t2", "a", "by hand")
	e.await("t2", task.Done)
	e.wantResult("t2", "by hand")
	for _, id := range []string{"t1", "t2"} {
		if runs := e.runs(id); len(runs) != 1 || runs[0].Finished.IsZero() || runs[0].Started.IsZero() {
			t.Errorf("runs of %s = %+v; want one that is over", id, runs)
		}
	}
}
