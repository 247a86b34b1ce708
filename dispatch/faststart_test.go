package dispatch_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/retention"
)

// newAloneEngine makes an engine with one slot, whose runs have directories: a
// task that comes alone begins at once there.
func newAloneEngine(t *testing.T) *engine {
	e := newEngine(t)
	e.dirs, e.opts.Workers = true, 1
	return e
}

// wantRunDir fails the test when a run directory is there and should not be, or
// the other way round.
func (e *engine) wantRunDir(id string, attempt int, want bool) {
	e.t.Helper()
	dir := e.parts.State.RunDir(envelope.ID(id), 1, attempt)
	if _, err := os.Stat(dir); (err == nil) != want {
		e.t.Errorf("run directory of attempt %d of %s: %v; want it there: %v", attempt, id, err, want)
	}
}

func TestATaskThatComesToAFreeSlotBeginsAsItIsAccepted(t *testing.T) {
	e := newAloneEngine(t)
	intended := false
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		runs, err := e.parts.Ledger.Runs(ctx, e.row("t1").Seq)
		intended = err == nil && len(runs) == 1 && runs[0].ID == j.RunID
		return quick(ctx, j)
	}
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	e.wantEvent("t1", "task.started")
	if !intended || e.log.count(`"state":"running"`) != 1 {
		t.Errorf("intended: %v; want its run in the ledger, and that it was accepted as running:\n%s", intended, e.log.String())
	}
}

func TestWhatDoesNotBeginAtOnceTakesNoSlotAndLeavesNoDirectory(t *testing.T) {
	e := newAloneEngine(t)
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Done)
	e.must(os.RemoveAll(e.parts.State.RunDir("t1", 1, 1))) // as collecting does
	e.send("t1", "quick")                                  // a duplicate
	e.wantRunDir("t1", 1, false)
	e.judge = holding
	e.send("t2", "quick")
	e.wantRunDir("t2", 1, false)
	e.judge = newEngine(t).judge
	e.must(os.WriteFile(e.parts.Box.ResultsDir()+"/t3.json", []byte("{"), 0o600))
	e.send("t3", "quick")
	e.wantRunDir("t3", 1, false)
	e.send("t4", "quick") // there is but one slot
	e.await("t4", task.Done)
}

func TestATaskThatTheLedgerCouldNotTakeBeginsWhenItCan(t *testing.T) {
	if !alone(t) {
		return
	}
	e := newAloneEngine(t)
	admit, full := e.judge, atomic.Bool{}
	full.Store(true)
	e.judge = func(task envelope.Task, now time.Time) task.Verdict {
		if full.Load() {
			e.limitFiles(1)
		}
		return admit(task, now)
	}
	e.start()
	e.send("t1", "quick")
	if e.log.count("no tasks can be taken in") != 1 {
		t.Errorf("the log does not say that the ledger cannot be written:\n%s", e.log.String())
	}
	e.wantRunDir("t1", 1, true) // nobody knows whether the disk has the intent all the same
	if n := e.log.count("agent started"); n > 0 {
		t.Errorf("the agent was started %d times; want it not before the ledger has that", n)
	}
	full.Store(false)
	e.limitFiles(unix.RLIM_INFINITY)
	e.Look(t.Context())
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
}

func TestATaskThatABudgetIsTooShortForDoesNotBeginAtOnce(t *testing.T) {
	words := make(chan int64)
	e := newAloneEngine(t)
	e.opts.Workers = 2
	e.plays["told"] = reporting(words)
	e.judge = sharing(100)
	e.start()
	e.send("t1", "told", budget(80))
	e.await("t1", task.Running)
	e.send("t2", "quick", budget(50))
	e.await("t2", task.Held)
	e.wantRunDir("t2", 1, false)
	words <- 20
	if row := e.await("t2", task.Done); row.Attempt != 1 || row.Status != envelope.OK {
		t.Errorf("t2 is %s after attempt %d; want ok after the first", row.Status, row.Attempt)
	}
	e.wantEvent("t2", "budget.settled")
}

func TestATaskIsCancelledWhileItBegins(t *testing.T) {
	e := newAloneEngine(t)
	var cancelling sync.WaitGroup
	e.log.seen = func(line string) {
		if strings.Contains(line, "task accepted") && strings.Contains(line, `"t1"`) {
			cancelling.Go(func() { e.must(e.Cancel(context.Background(), "t1", me)) })
		}
	}
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Done)
	cancelling.Wait()
	if row := e.row("t1"); row.Status != envelope.Stopped {
		t.Errorf("t1 is %s; want cancelled", row.Status)
	}
	e.send("t2", "quick")
	e.await("t2", task.Done)
}

func TestATaskThatWasToBeginWhenWeStoppedDoesSoAfterTheNextStart(t *testing.T) {
	e := newAloneEngine(t)
	e.log.seen = func(line string) {
		if strings.Contains(line, "task accepted") {
			e.stop()
		}
	}
	e.start()
	e.send("t1", "quick")
	e.end()
	if row := e.log.count("agent started"); row > 0 {
		t.Errorf("the agent was started %d times after the end; want it not before the next start", row)
	}
	e.log.seen = nil
	e.start()
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	if n := e.log.count("run never began"); n > 0 {
		t.Errorf("the next start found %d intents to run; want the task queued again when we stopped", n)
	}
}

func TestNothingBeginsAtOnceOfAnAgentThatIsDrained(t *testing.T) {
	e := newAloneEngine(t)
	drained := false
	e.looksUp = func() { // first of a line that was judged, and has no slot yet
		if !drained {
			drained = true
			e.must(e.Drain(context.Background(), "quick", me))
		}
	}
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Held)
	e.wantHeld("t1", task.Paused)
	e.wantRunDir("t1", 1, false)
	if n := e.log.count("agent started"); n > 0 || !drained {
		t.Errorf("drained: %v, and the agent was started %d times after that; want it not at all", drained, n)
	}
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", task.Done)
}

func TestTheDirectoryOfATaskThatIsBeingAcceptedIsNotCollected(t *testing.T) {
	e := newAloneEngine(t)
	e.start()
	busy, free := make(chan struct{}), make(chan struct{})
	e.writing.Go(func() {
		e.must(e.parts.Ledger.Update(context.Background(), func(*ledger.Tx) error {
			close(busy)
			<-free
			return nil
		}))
	})
	<-busy
	e.writing.Go(func() { e.send("t1", "quick") })
	dir := e.parts.State.RunDir("t1", 1, 1)
	e.until("its directory is made", func() bool { _, err := os.Stat(dir); return err == nil })
	e.collect(retention.Policy{MaxRunBytes: 1}, time.Now())
	close(free)
	e.await("t1", task.Done)
	e.wantRunDir("t1", 1, true)
}
