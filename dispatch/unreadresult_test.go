package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
	"mailboxd/internal/testtools/slowtest"
)

var passing = []syscall.Errno{unix.EIO, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ESTALE}

// holdEverything has every task wait for an operator.
func (e *engine) holdEverything() {
	e.judge = func(envelope.Task, time.Time) task.Verdict {
		return task.Verdict{Admit: true, Hold: []task.Reason{task.Operator}}
	}
}

func TestAResultFileThatCannotBeReadNowIsTakenLater(t *testing.T) {
	slowtest.Serial(t)
	e := newEngine(t)
	e.holdEverything()
	e.start()
	left := failWith(t, "result file", passing, func() {})
	for i := range passing {
		id := fmt.Sprint("t", i)
		e.send(id, "quick")
		e.await(id, task.Held)
		e.putResult(id, "quick", "by hand")
	}
	for i := range passing {
		id := fmt.Sprint("t", i)
		e.await(id, task.Done)
		e.wantResult(id, "by hand")
		if kinds, _ := e.history(id); slices.Contains(kinds, "result.invalid") {
			t.Errorf("%s has events %v; want no result.invalid", id, kinds)
		}
	}
	if left() > 0 {
		t.Errorf("%d failures did not happen", left())
	}
}

func TestAResultFileThatMayNotBeReadHoldsItsTask(t *testing.T) {
	slowtest.Serial(t)
	e := newEngine(t)
	e.holdEverything()
	e.start()
	for i, errno := range []syscall.Errno{unix.EACCES, unix.EPERM, unix.ELOOP, unix.EISDIR, unix.ENXIO} {
		id := fmt.Sprint("t", i)
		e.send(id, "quick")
		e.await(id, task.Held)
		t.Cleanup(fault.FailReads(func(what string) error {
			if what == "result file" {
				return errno
			}
			return nil
		}))
		e.putResult(id, "quick", "by hand")
		e.until(id+" is held for its result file", func() bool { return slices.Contains(e.row(id).Reasons, task.ResultInvalid) })
		if _, data := e.history(id); !strings.Contains(data, errno.Error()) {
			t.Errorf("the events of %s say %s; want %v", id, data, errno)
		}
	}
}

func TestAnAgentIsNotRunWhileTheResultOfItsTaskCannotBeRead(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	slowtest.Serial(t)
	e := newEngine(t)
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		t.Error("the agent was run")
		return decision(j, "done")
	}
	e.start()
	left := failWith(t, "result file", []syscall.Errno{unix.EIO, unix.ENOMEM}, func() {})
	e.putResult("t1", "a", "by hand")
	e.send("t1", "a")
	e.await("t1", task.Done)
	e.wantResult("t1", "by hand")
	if left() > 0 {
		t.Errorf("%d failures did not happen", left())
	}
}

func TestAnAgentThatFetchesItsTasksHasAnsweredOnceItsResultFileCanBeRead(t *testing.T) {
	slowtest.Serial(t)
	e := newEngine(t)
	e.start()
	e.send("t1", "editor")
	e.await("t1", task.Waiting)
	left := failWith(t, "result file", []syscall.Errno{unix.EIO}, func() {})
	e.putResult("t1", "editor", "by hand")
	if row := e.row("t1"); row.State != task.Waiting {
		t.Errorf("t1 is %s while its result file cannot be read; want waiting", row.State)
	}
	e.await("t1", task.Done)
	e.wantResult("t1", "by hand")
	if kinds, _ := e.history("t1"); slices.Contains(kinds, "result.invalid") || left() > 0 {
		t.Errorf("events %v, failures to come: %d; want no result.invalid, 0", kinds, left())
	}
}

// A file that has the name of a result may be that result itself, put before a crash.
func TestAFileInThePlaceOfAResultIsNoConflictWhileItCannotBeRead(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	slowtest.Serial(t)
	e := newEngine(t)
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		path := filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
		e.must(os.WriteFile(path, []byte("somebody's"), 0o600))
		return decision(j, "done")
	}
	e.start()
	left := failWith(t, "result file", []syscall.Errno{unix.EIO}, func() {
		if kinds, _ := e.history("t1"); slices.Contains(kinds, "result.conflict") {
			t.Errorf("events %v before the file was read; want no result.conflict", kinds)
		}
	})
	e.send("t1", "a")
	e.until("the file was read", func() bool { return left() == 0 })
	if kinds, _ := e.history("t1"); slices.Contains(kinds, "result.conflict") || e.row("t1").Put {
		t.Errorf("events %v, put: %v; want no result.conflict, false", kinds, e.row("t1").Put)
	}
	e.await("t1", task.Done)
	e.wantEvent("t1", "result.conflict")
	e.wantResult("t1", "somebody's")
}

func TestAResultIsPutWhenTheFileInItsPlaceIsGone(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	slowtest.Serial(t)
	e := newEngine(t)
	var path string
	e.plays["a"] = func(_ context.Context, j task.Job) task.Outcome {
		path = filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
		e.must(os.WriteFile(path, []byte("somebody's"), 0o600))
		return decision(j, "done")
	}
	e.start()
	failWith(t, "result file", []syscall.Errno{unix.ENOENT}, func() { e.must(os.Remove(path)) })
	e.send("t1", "a")
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	if kinds, _ := e.history("t1"); slices.Contains(kinds, "result.conflict") {
		t.Errorf("events %v; want no result.conflict", kinds)
	}
}
