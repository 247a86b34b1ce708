package dispatch_test

import (
	"os"
	"path/filepath"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// loseLedger spoils the ledger of an engine that is not running.
func (e *engine) loseLedger() {
	e.t.Helper()
	path := filepath.Join(e.dir, "state", "ledger.db")
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !os.IsNotExist(err) {
			e.t.Fatal(err)
		}
	}
	e.must(os.WriteFile(path, []byte("not a database any more"), 0o600))
}

func TestALostLedgerRunsNothingByItself(t *testing.T) {
	e := startEngine(t)
	e.send("answered", "quick")
	e.send("revised", "quick")
	e.await("revised", task.Done)
	e.send("revised", "quick", `"deadline":"2999-01-01T00:00:00Z"`)
	e.until("both are answered", func() bool { return e.row("answered").Put && e.row("revised").Revision == 2 && e.row("revised").Put })
	before := e.result("revised")
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("pending", "quick")
	e.end()
	e.loseLedger()
	e.start()
	e.Look(t.Context())
	e.await("answered", task.Done)
	if row := e.await("revised", task.Done); row.Status != envelope.OK || e.result("revised") != before {
		t.Errorf("revised = %s, %s; want the result that was there, %s", row.Status, e.result("revised"), before)
	}
	e.wantEvent("revised", "result.adopted")
	e.wantHeld("pending", task.Recovered)
	e.send("fresh", "quick")
	e.await("fresh", task.Done)
	e.restart()
	e.Look(t.Context())
	e.wantHeld("pending", task.Recovered)
	e.must(e.Release(t.Context(), "pending", me))
	e.await("pending", task.Done)
}

// A result that was there when its task was read again may be of a run that was
// approved; one that comes later is not.
func TestALostLedgerLosesNoResultOfAnApprovedRun(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalBoth)
	e.start()
	e.send("t1", "quick")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Review)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.send("t2", "quick")
	before := e.result("t1")
	e.end()
	e.loseLedger()
	e.start()
	e.Look(t.Context())
	e.await("t1", task.Done)
	if e.result("t1") != before {
		t.Errorf("t1 = %s; want the result that was there, %s", e.result("t1"), before)
	}
	e.wantHeld("t2", task.Approval, task.Recovered)
	e.putResult("t2", "quick", "forged")
	e.until("the forged file is gone", func() bool { return e.result("t2") == "" })
	e.wantHeld("t2", task.Approval, task.Recovered)
}

// The new ledger knows that the old one was lost until every line was met
// again, so that being killed before changes nothing.
func TestALossIsRememberedUntilEveryLineWasMetAgain(t *testing.T) {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("pending", "quick")
	e.end()
	e.loseLedger()
	e.start() // looks at nothing
	e.restart()
	e.Look(t.Context())
	e.wantHeld("pending", task.Recovered)
}

// Killed after the unreadable file was moved and before there was another.
func TestALossThatWasCutShortIsStillALoss(t *testing.T) {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("pending", "quick")
	e.end()
	e.loseLedger()
	path := filepath.Join(e.dir, "state", "ledger.db")
	e.must(os.Rename(path, path+".unreadable-20260101T000000Z"))
	e.start()
	e.Look(t.Context())
	e.wantHeld("pending", task.Recovered)
}

// leaveRunDir makes a run directory of which no ledger knows, with these files.
func (e *engine) leaveRunDir(name string, files ...string) {
	e.t.Helper()
	dir := filepath.Join(e.dir, "state", "runs", name)
	e.must(os.MkdirAll(dir, 0o700))
	for _, file := range files {
		e.must(os.WriteFile(filepath.Join(dir, file), nil, 0o600))
	}
}

func TestARunDirectoryThatTheLedgerDoesNotKnowHoldsItsTask(t *testing.T) {
	e := newEngine(t)
	e.dirs = true
	e.leaveRunDir("same/1.2", "stdout")
	e.leaveRunDir("later/2.1", "stdout") // of a revision whose first one is forgotten
	e.start()
	for _, id := range []string{"same", "later"} {
		e.send(id, "quick")
		e.wantHeld(id, task.Recovered)
	}
	e.restart()
	for _, id := range []envelope.ID{"same", "later"} {
		e.wantHeld(string(id), task.Recovered)
		e.must(e.Release(t.Context(), id, me))
	}
	e.await("later", task.Done)
	if row := e.await("same", task.Done); row.Attempt != 3 {
		t.Errorf("it ran as attempt %d; want 3, the first without a directory", row.Attempt)
	}
}

// Killed between the directory and the intent, a daemon has begun nothing.
func TestARunDirectoryInWhichNothingBeganHoldsNothing(t *testing.T) {
	e := newEngine(t)
	e.dirs = true
	e.leaveRunDir("t1/1.1")
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Done)
}

func TestAQueuedTaskIsHeldWhenItsTurnComesAndItMayHaveRun(t *testing.T) {
	e := newEngine(t)
	e.dirs = true
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.wantHeld("t1", task.Paused)
	e.leaveRunDir("t1/1.1", "stdout")
	e.must(e.Resume(t.Context(), "quick", me))
	e.until("it is held", func() bool { return len(e.row("t1").Reasons) == 1 && e.row("t1").Reasons[0] == task.Recovered })
	e.must(e.Release(t.Context(), "t1", me))
	if row := e.await("t1", task.Done); row.Attempt != 2 {
		t.Errorf("it ran as attempt %d; want 2", row.Attempt)
	}
}

// A task may be queued twice for a moment: then both workers prepare the same
// attempt, and the one that is late finds the directory of the other.
func TestTheEmptyRunDirectoryOfAnotherWorkerIsLeftAlone(t *testing.T) {
	e := newEngine(t)
	e.dirs = true
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.wantHeld("t1", task.Paused)
	e.leaveRunDir("t1/1.1")
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", task.Done)
	if left, err := os.ReadDir(filepath.Join(e.dir, "state", "runs", "t1", "1.1")); err != nil || len(left) != 0 {
		t.Errorf("1.1 has %v, %v; want nothing", left, err)
	}
}
