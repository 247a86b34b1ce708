package dispatch_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// drafts counts the open files in results/ that have no name.
func (e *engine) drafts() (n int) {
	e.t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	e.must(err)
	for _, f := range files {
		path, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if strings.HasPrefix(path, e.parts.Box.ResultsDir()+"/#") {
			n++
		}
	}
	return n
}

// canDraft skips the test where files always have names.
func (e *engine) canDraft() {
	e.t.Helper()
	draft, err := e.parts.Box.DraftResult(nil, 0o600)
	if err != nil {
		e.t.Skipf("files always have names here: %v", err)
	}
	draft.Drop()
}

// occupies is an agent whose answer comes while somebody else writes to the
// ledger, until free is closed: meanwhile is what they do to its task.
func (e *engine) occupies(free chan struct{}, meanwhile func(tx *ledger.Tx, j task.Job) error) play {
	return func(_ context.Context, j task.Job) task.Outcome {
		begun, once := make(chan struct{}), sync.Once{}
		e.writing.Go(func() {
			e.must(e.parts.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
				err := meanwhile(tx, j)
				once.Do(func() { close(begun) })
				<-free
				return err
			}))
		})
		<-begun
		return decision(j, "done")
	}
}

func nothing(*ledger.Tx, task.Job) error { return nil }

func TestAResultHasNoNameBeforeTheLedgerHasIt(t *testing.T) {
	e := newEngine(t)
	free := make(chan struct{})
	e.plays["gated"] = e.occupies(free, nothing)
	e.start()
	e.canDraft()
	e.send("t1", "gated")
	e.until("the result is drafted", func() bool { return e.drafts() == 1 })
	if got := e.result("t1"); got != "" {
		t.Errorf("results/ has %s; want nothing before the ledger has it", got)
	}
	close(free)
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	e.wantNoDrafts()
}

func TestAResultThatTheLedgerCouldNotTakeHasNoFile(t *testing.T) {
	if !alone(t) {
		return
	}
	e := newEngine(t)
	e.plays["full"] = func(_ context.Context, j task.Job) task.Outcome {
		e.limitFiles(16 << 10) // enough for a result
		e.fillLedger()
		return decision(j, "done")
	}
	complained := make(chan struct{})
	reportFault := sync.OnceFunc(func() { close(complained) })
	e.log.seen = func(line string) {
		if strings.Contains(line, "ledger cannot be written; trying again") {
			reportFault()
		}
	}
	e.start()
	e.canDraft()
	e.send("t1", "full")
	<-complained
	e.until("the result is drafted", func() bool { return e.drafts() == 1 })
	if got := e.result("t1"); got != "" {
		t.Errorf("results/ has %s; want nothing before the ledger has it", got)
	}
	e.limitFiles(unix.RLIM_INFINITY)
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	e.wantNoDrafts()
}

func TestADraftIsDroppedWhenSomebodyElseEndsTheTask(t *testing.T) {
	e := newEngine(t)
	free := make(chan struct{})
	theirs := []byte(`{"theirs":true}`)
	e.plays["late"] = e.occupies(free, func(tx *ledger.Tx, j task.Job) error {
		row, _, err := tx.Latest(j.Task.ID)
		if err == nil {
			_, err = tx.Move(row.Seq, task.Running, row.Attempt, task.Change{To: task.Done, Status: envelope.Stopped, Result: theirs})
		}
		return err
	})
	e.start()
	e.canDraft()
	e.send("t1", "late")
	e.until("the result is drafted", func() bool { return e.drafts() == 1 })
	close(free)
	e.must(e.Idle(t.Context()))
	if got := e.result("t1"); strings.Contains(got, "done") {
		t.Errorf("result = %s; want nothing of an answer that came too late", got)
	}
	e.wantNoDrafts()
}

func TestAWithheldAnswerIsNeverLinked(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Review)
	e.wantNoDrafts()
	e.wantNothingShown("t1")
	e.must(e.Deny(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantWithheld("t1")
}

func TestDraftsLeaveNoDescriptorsBehind(t *testing.T) {
	e := startEngine(t)
	for n := range 40 {
		e.send("t"+strconv.Itoa(n), "quick")
	}
	e.must(e.Idle(t.Context()))
	e.wantResult("t39", "done, revision 1")
	e.wantNoDrafts()
}

// wantNoDrafts fails the test when a result without a name is open although
// everything is done.
func (e *engine) wantNoDrafts() {
	e.t.Helper()
	e.must(e.Idle(e.t.Context()))
	if n := e.drafts(); n > 0 {
		e.t.Errorf("%d drafts are open; want none", n)
	}
}
