package dispatch_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// alone runs the test anew in a process of its own, and reports whether this is
// that: a limit of the process is not to meet the log that "go test" keeps in it.
func alone(t *testing.T) bool {
	t.Helper()
	const name = "DISPATCH_TEST_ALONE"
	if os.Getenv(name) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), name+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	return false
}

// limitFiles has writes fail behind so many bytes of any file, until the test is over.
func (e *engine) limitFiles(bytes uint64) {
	e.t.Helper()
	var limit unix.Rlimit
	e.must(unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	before := limit
	limit.Cur = min(bytes, limit.Max)
	e.must(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	e.t.Cleanup(func() { e.must(unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) })
}

// fillLedger writes events until the limit of [engine.limitFiles] refuses them. The
// log may have just been begun anew: that the limit is low is not enough.
func (e *engine) fillLedger() {
	e.t.Helper()
	for range 64 {
		err := e.parts.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
			return tx.Log(task.Event{Time: time.Now(), Kind: "test.filling"})
		})
		if err != nil {
			return
		}
	}
	e.t.Error("the limit of a file's size refuses nothing")
}

// The end of a run can't be written, for which there is no room.
func TestAFullDiskTakesNoAttemptAway(t *testing.T) {
	if !alone(t) {
		return
	}
	e := newEngine(t)
	e.plays["again"] = func(_ context.Context, j task.Job) task.Outcome {
		if j.Attempt > 1 {
			return decision(j, "done")
		}
		e.limitFiles(16 << 10) // less than the log has
		err := e.parts.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
			return tx.Log(task.Event{Time: time.Now(), Kind: "test.pending"})
		})
		if err != nil && !errors.Is(err, unix.EFBIG) { // the tables may have met the limit before
			t.Error(err)
		}
		o := decision(j, "not yet")
		o.Result.Status, o.Retry = envelope.Failed, true
		return o
	}
	complained := make(chan struct{})
	reportFault := sync.OnceFunc(func() { close(complained) })
	e.log.seen = func(line string) {
		if strings.Contains(line, "ledger cannot be written; trying again") {
			if !strings.Contains(line, "raise the limit of a file's size") {
				t.Errorf("logged %s; want what to do", line)
			}
			reportFault()
		}
	}
	e.start()
	e.send("t1", "again")
	<-complained
	e.limitFiles(unix.RLIM_INFINITY)
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
}
