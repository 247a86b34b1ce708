package dispatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/retention"
	"mailboxd/internal/testtools/slowtest"
)

const year = 365 * 24 * time.Hour

func (e *engine) collect(r retention.Policy, now time.Time) retention.Collected {
	e.t.Helper()
	gone, err := retention.Collector(e.parts).Collect(e.t.Context(), r, now, false)
	e.must(err)
	return gone
}

func TestAnIDStaysKnownWhenItsBodiesAreGone(t *testing.T) {
	e := startEngine(t)
	e.send("t1", "quick")
	e.await("t1", task.Done)
	keep := retention.Policy{Ledger: 24 * time.Hour}
	if gone := e.collect(keep, time.Now()); gone != (retention.Collected{}) {
		t.Errorf("collected %+v at once; want nothing", gone)
	}
	gone := e.collect(keep, time.Now().Add(48*time.Hour))
	if gone.Bodies != 1 || gone.Events == 0 {
		t.Errorf("collected %+v; want 1 request and its events", gone)
	}
	e.must(e.parts.Box.RemoveResult("t1")) // its reader is through with it
	e.restart()
	e.send("t1", "quick")
	e.must(e.Idle(t.Context()))
	if row := e.row("t1"); row.Revision != 1 || row.Attempt != 1 || row.Hash == "" {
		t.Errorf("t1 = revision %d, attempt %d; want it known and not run again", row.Revision, row.Attempt)
	}
	if e.log.count("trying again") > 0 {
		t.Errorf("the log says\n%s\nwant no word of the missing result", e.log.String())
	}
}

// The alarm of a deadline may ring long after its task is done and collected.
func TestAnAlarmOfATaskThatWasCollectedSaysNothing(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := startEngine(t)
	soon := time.Now().Add(1500 * time.Millisecond).UTC()
	e.send("t1", "quick", fmt.Sprintf(`"deadline":%q`, soon.Format(time.RFC3339Nano)))
	e.await("t1", task.Done)
	e.collect(retention.Policy{Ledger: time.Hour}, time.Now().Add(year))
	e.send("t2", "slow", fmt.Sprintf(`"deadline":%q`, soon.Format(time.RFC3339Nano)))
	e.until("the deadline is over", func() bool { return time.Now().After(soon.Add(50 * time.Millisecond)) })
	if e.log.count("cannot be looked at") > 0 {
		t.Errorf("the log says\n%s\nwant nothing of t1", e.log.String())
	}
}

func TestWhatIsNotDoneKeepsEverything(t *testing.T) {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.makeRun("t1", 1, 1, 10)
	gone := e.collect(retention.Policy{Runs: time.Hour, Ledger: time.Hour, MaxRunBytes: 1}, time.Now().Add(year))
	if gone.Runs != 0 || gone.Bodies != 0 {
		t.Errorf("collected %+v; want nothing of a held task", gone)
	}
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", task.Done)
	if gone := e.collect(retention.Policy{Runs: time.Hour}, time.Now().Add(year)); gone.Runs != 1 {
		t.Errorf("collected %+v once it is done; want its run directory", gone)
	}
}

func TestTheOldestRunDirectoriesGoWhenAllAreTooLarge(t *testing.T) {
	e := startEngine(t)
	for n := range 5 {
		id := fmt.Sprintf("t%d", n)
		e.send(id, "quick")
		e.await(id, task.Done)
		e.makeRun(id, 1, 1, 1000)
		old := time.Now().Add(-time.Duration(10-n) * time.Hour)
		dir := e.parts.State.RunDir(e.row(id).ID, 1, 1)
		e.must(os.Chtimes(filepath.Join(dir, "stdout"), old, old))
		e.must(os.Chtimes(dir, old, old))
	}
	size := e.collect(retention.Policy{MaxRunBytes: 1 << 40}, time.Now())
	if size.Runs != 0 {
		t.Errorf("collected %+v below the limit; want nothing", size)
	}
	info, err := os.Stat(e.parts.State.RunDir("t4", 1, 1))
	e.must(err)
	gone := e.collect(retention.Policy{MaxRunBytes: 2 * (1000 + info.Size())}, time.Now())
	if gone.Runs != 3 {
		t.Errorf("collected %+v; want the 3 oldest directories", gone)
	}
	for n, want := range []bool{false, false, false, true, true} {
		_, err := os.Stat(e.parts.State.RunDir(e.row(fmt.Sprintf("t%d", n)).ID, 1, 1))
		if (err == nil) != want {
			t.Errorf("directory of t%d: %v; want it there: %v", n, err, want)
		}
	}
}

func TestDeadLettersGoByTheDay(t *testing.T) {
	e := startEngine(t)
	dir := filepath.Join(e.parts.Box.Path(), "rejected")
	e.must(os.MkdirAll(dir, 0o700))
	for _, name := range []string{"2026-01-01.jsonl", "2026-01-02.jsonl", "notes.txt"} {
		e.must(os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o600))
	}
	now := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	if gone := e.collect(retention.Policy{Rejected: 12 * time.Hour}, now); gone.Rejected != 1 {
		t.Errorf("collected %+v; want the day that ended a day ago", gone)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Errorf("a file that is not ours: %v; want it left alone", err)
	}
}

// makeRun makes the directory of a run, as an agent leaves it.
func (e *engine) makeRun(id string, rev, attempt, bytes int) {
	e.t.Helper()
	dir, err := e.parts.State.MakeRunDir(e.row(id).ID, rev, attempt)
	e.must(err)
	e.must(os.WriteFile(filepath.Join(dir, "stdout"), make([]byte, bytes), 0o600))
}
