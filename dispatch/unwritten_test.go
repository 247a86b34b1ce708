package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
	"mailboxd/internal/testtools/slowtest"
)

var writeErrors = []syscall.Errno{
	unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EACCES, unix.ESTALE,
}

// failWith has a read or a write fail with one error after the other, and succeed
// after the last. Before each failure it calls look. Left says how many are to come.
func failWith(t *testing.T, name string, errnos []syscall.Errno, look func()) (left func() int) {
	t.Helper()
	var met atomic.Int64
	t.Cleanup(fault.FailReads(func(what string) error {
		if what != name {
			return nil
		}
		i := int(met.Add(1)) - 1
		if i >= len(errnos) {
			return nil
		}
		look()
		return errnos[i]
	}))
	return func() int { return max(0, len(errnos)-int(met.Load())) }
}

func TestALineIsTakenOnceTheLedgerCanBeWritten(t *testing.T) {
	slowtest.Serial(t)
	e, executions := newEngine(t), 0
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		executions++
		return decision(j, "done")
	}
	e.start()
	left := failWith(t, "write ledger", writeErrors, func() {})
	for e.send("t1", "a"); left() > 0; e.Look(t.Context()) {
		if row := e.row("t1"); row.ID != "" {
			t.Fatalf("t1 is %s while the ledger cannot be written", row.State)
		}
	}
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	if executions != 1 {
		t.Errorf("executed %d times; want once", executions)
	}
	e.wantEvent("t1", "task.accepted")
}

func TestTheEndOfARunIsShownOnceTheLedgerCanBeWritten(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	slowtest.Serial(t)
	e := newEngine(t)
	const complaint = "ledger cannot be written; trying again"
	var executions, failures atomic.Int64
	var ended, shown atomic.Bool
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		executions.Add(1)
		ended.Store(true)
		return decision(j, "done")
	}
	e.start()
	errnos := []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EACCES}
	t.Cleanup(fault.FailReads(func(what string) error {
		n := int(failures.Load())
		if what != "write ledger" || !ended.Load() || n >= len(errnos) && e.log.count(complaint) > 0 {
			return nil
		}
		failures.Add(1)
		if e.result("t1") != "" {
			shown.Store(true)
		}
		return errnos[n%len(errnos)]
	}))
	e.send("t1", "a")
	e.until("t1 has a result", func() bool { return e.result("t1") != "" })
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	if executions.Load() != 1 || shown.Load() || e.log.count(complaint) != 1 {
		t.Errorf("executed %d times, shown before it was in the ledger: %v; want 1, false; the log says\n%s", executions.Load(), shown.Load(), e.log.String())
	}
	e.wantEvent("t1", "task.finished")
}

func TestAResultFileIsWrittenOnceItCanBe(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	slowtest.Serial(t)
	e := newEngine(t)
	var executions, writes, names atomic.Int64
	var works atomic.Bool
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		executions.Add(1)
		return decision(j, "done")
	}
	e.start()
	t.Cleanup(fault.FailReads(func(what string) error {
		switch {
		case works.Load():
		case what == "write result file":
			if n := int(writes.Add(1)); n%2 == 0 { // of the others the name cannot be made
				return writeErrors[n/2%len(writeErrors)]
			}
		case what == "name result file":
			return writeErrors[int(names.Add(1))%len(writeErrors)]
		}
		return nil
	}))
	ids := make([]string, 2*len(writeErrors))
	for i := range ids {
		ids[i] = fmt.Sprint("t", i)
		e.send(ids[i], "a")
	}
	for _, id := range ids {
		e.until(id+" is done", func() bool { return e.row(id).State == task.Done })
		if row := e.row(id); row.Put || e.result(id) != "" {
			t.Errorf("%s: put: %v, its file says %q; want neither", id, row.Put, e.result(id))
		}
	}
	e.until("each error has happened", func() bool {
		return int(writes.Load()) >= len(ids) && int(names.Load()) >= len(writeErrors)
	})
	works.Store(true)
	for _, id := range ids {
		e.await(id, task.Done)
		e.wantResult(id, "done, revision 1")
		if kinds, _ := e.history(id); slices.Contains(kinds, "result.conflict") {
			t.Errorf("%s has events %v; want no result.conflict", id, kinds)
		}
	}
	if n := executions.Load(); n != int64(len(ids)) {
		t.Errorf("executed %d times; want %d", n, len(ids))
	}
	if n := e.log.count("results cannot be delivered; trying again"); n != 1 {
		t.Errorf("complained %d times of what all results have; want once\n%s", n, e.log.String())
	}
}
