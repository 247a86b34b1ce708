package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// places opens a mailbox with its state in a new directory.
func places(t *testing.T) store.Parts {
	t.Helper()
	dir := t.TempDir()
	box, err := mailbox.Open(filepath.Join(dir, "box"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	state, err := mailbox.OpenState(filepath.Join(dir, "state"), box.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	memory, _, err := ledger.Open(state.LedgerPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	return store.Parts{Box: box, State: state, Ledger: memory}
}

// remember writes a revision down as an earlier daemon left it.
func remember(t *testing.T, l *ledger.Ledger, row task.Task) task.Task {
	t.Helper()
	return rememberOf(t, l, row, runner.Boot())
}

// rememberOf does so for a boot of the machine.
func rememberOf(t *testing.T, l *ledger.Ledger, row task.Task, boot string) task.Task {
	t.Helper()
	raw := fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"requester_id":"r","target_agent":"a","target_role":"executor",`+
		`"task_type":"work","description":"d","input":{"refs":[],"payload":{"revision":%d}}}`, row.ID, row.Revision)
	asked, findings := envelope.DecodeTask([]byte(raw), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	row.Hash, row.Dialect, row.Agent, row.Requester, row.Received = asked.Hash, "ainl", "a", "r", time.Now()
	err := l.Update(t.Context(), func(tx *ledger.Tx) (err error) {
		if row.Seq, err = tx.Add(row, []byte(raw)); err == nil && row.Attempt > 0 {
			err = tx.StartRun(task.Run{Task: row.Seq, Attempt: row.Attempt, ID: "run", Intent: time.Now(), Boot: boot})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// obliging agents are admitted and answer ok, and their runs are told.
func obliging(ran chan<- task.Job) store.Agents {
	return store.Agents{
		Judge: func(envelope.Task, time.Time) task.Verdict { return task.Verdict{Admit: true} },
		Run: func(_ context.Context, j task.Job, _ func(runner.Process)) task.Outcome {
			ran <- j
			return outcome(j)
		},
		Recover: func(_ context.Context, j task.Job) task.Outcome { return outcome(j) },
		Refs:    func(string) store.RefRule { return store.RefRule{} },
		HasDir:  func(string) bool { return false },
		Limit:   func(string) int { return 9 },
		Reruns:  func(string) bool { return true },
		Retries: func(string) int { return 0 },
		Backoff: func(string) time.Duration { return time.Second },
		Inbox:   func(string) store.Inbox { return store.Inbox{} },
		Known:   func(string) bool { return false },
		Mode:    func(envelope.Control) envelope.Mode { return envelope.Enforce },

		ApprovalTTL: func() time.Duration { return 0 },
	}
}

func outcome(j task.Job) task.Outcome {
	return task.Outcome{Result: envelope.Result{TaskID: j.Task.ID, AgentID: "a", Status: envelope.OK}}
}

// serve works a dispatcher until the test ends.
func serve(t *testing.T, parts store.Parts, agents store.Agents, workers int) *dispatch.Dispatcher {
	t.Helper()
	d, err := dispatch.Open(t.Context(), parts, agents, store.Options{Workers: workers, Queue: 9, Grace: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving errgroup.Group
	serving.Go(func() error { return d.Serve(ctx) })
	t.Cleanup(func() {
		stop()
		if err := serving.Wait(); err != nil {
			t.Error(err)
		}
		d.Close()
	})
	return d
}

func TestARevisionWaitsForTheRunBeforeItThatIsFoundAtTheStart(t *testing.T) {
	parts := places(t)
	remember(t, parts.Ledger, task.Task{ID: "x", Revision: 1, State: task.Running, Attempt: 1})
	remember(t, parts.Ledger, task.Task{ID: "x", Revision: 2, State: task.Received})
	remember(t, parts.Ledger, task.Task{ID: "other", Revision: 1, State: task.Queued})
	ran, over := make(chan task.Job, 9), make(chan struct{})
	agents := obliging(ran)
	agents.Recover = func(_ context.Context, j task.Job) task.Outcome {
		<-over
		return outcome(j)
	}
	serve(t, parts, agents, 2) // one slot is the found run's, so the rest come in order
	if first := <-ran; first.Task.ID != "other" {
		t.Errorf("%s revision %d was run while its revision 1 still ran", first.Task.ID, first.Revision)
	}
	close(over)
	if then := <-ran; then.Task.ID != "x" || then.Revision != 2 {
		t.Errorf("then ran %s revision %d; want x revision 2", then.Task.ID, then.Revision)
	}
}

func TestARevisionReplacesOneThatIsBackInTheQueue(t *testing.T) {
	parts := places(t)
	first := remember(t, parts.Ledger, task.Task{ID: "x", Revision: 1, State: task.Held, Attempt: 1,
		Reasons: []task.Reason{task.Capacity}, Until: time.Now().Add(time.Hour)})
	remember(t, parts.Ledger, task.Task{ID: "x", Revision: 2, State: task.Received})
	ran := make(chan task.Job, 9)
	d := serve(t, parts, obliging(ran), 2)
	if job := <-ran; job.Revision != 2 {
		t.Errorf("revision %d was run; want 2", job.Revision)
	}
	if err := d.Idle(t.Context()); err != nil {
		t.Error(err)
	}
	if row, err := parts.Ledger.Task(t.Context(), first.Seq); err != nil || row.State != task.Done || row.Status != envelope.Stopped {
		t.Errorf("revision 1 is %s, %s, %v; want it replaced", row.State, row.Status, err)
	}
}

func TestATaskReplacedWhileItRestsIsNotWaitedFor(t *testing.T) {
	parts := places(t)
	remember(t, parts.Ledger, task.Task{ID: "x", Revision: 1, State: task.Held, Attempt: 1,
		Reasons: []task.Reason{task.Capacity}, Until: time.Now().Add(time.Hour)})
	line := `{"schema_version":"1.0","task_id":"x","requester_id":"r","target_agent":"a","target_role":"executor",` +
		`"task_type":"work","description":"new","input":{"refs":[],"payload":{}}}`
	if _, _, err := mailbox.Append(parts.Box.Path(), []byte(line)); err != nil {
		t.Fatal(err)
	}
	ran := make(chan task.Job, 9)
	d := serve(t, parts, obliging(ran), 2)
	d.Look(t.Context())
	if job := <-ran; job.Revision != 2 {
		t.Errorf("revision %d was run; want 2", job.Revision)
	}
	if err := d.Idle(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnIntentCountsAsStartedUnlessItsDirectoryIsTheVeryOne(t *testing.T) {
	for name, c := range map[string]struct {
		since func(evidence, dir string) string // what happens to the directory; returns what the intent says of it
		want  string
	}{
		"the same directory":       {func(evidence, _ string) string { return evidence }, "run"},
		"another boot":             {func(evidence, _ string) string { return "an earlier one" + evidence[len(runner.Boot()):] }, "recovered"},
		"the boot alone":           {func(string, string) string { return runner.Boot() }, "recovered"},
		"no evidence":              {func(string, string) string { return "" }, "recovered"},
		"restored from a copy":     {restored(t), "recovered"},
		"mounted once more":        {mountedAgain(t), "recovered"},
		"a process that was noted": {func(string, string) string { return "noted" }, "recovered"},
	} {
		parts := places(t)
		dir, err := parts.State.MakeRunDir("x", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		evidence := c.since(runner.Evidence(dir), dir)
		row := rememberOf(t, parts.Ledger, task.Task{ID: "x", Revision: 1, State: task.Running, Attempt: 1}, evidence)
		if evidence == "noted" {
			err = parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error { return tx.SetProcess(row.Seq, 1, 1, 1, runner.Boot()) })
		}
		if err != nil {
			t.Fatal(err)
		}
		became := make(chan string, 9)
		agents := obliging(make(chan task.Job, 9))
		agents.HasDir = func(string) bool { return true } // with nothing in them: it never began, or nothing was synced
		agents.Run = func(_ context.Context, j task.Job, _ func(runner.Process)) task.Outcome {
			became <- "run"
			return outcome(j)
		}
		agents.Recover = func(_ context.Context, j task.Job) task.Outcome {
			became <- "recovered"
			return outcome(j)
		}
		serve(t, parts, agents, 1)
		if got := <-became; got != c.want {
			t.Errorf("%s: the intent was %s; want it %s", name, got, c.want)
		}
	}
}

// restored puts a copy in the place of a directory. The copy is made first, so that
// it cannot get the same inode in the same tick of the clock.
func restored(t *testing.T) func(evidence, dir string) string {
	return func(evidence, dir string) string {
		restored := dir + ".restored"
		if err := errors.Join(os.Mkdir(restored, 0o700), os.Remove(dir), os.Rename(restored, dir)); err != nil {
			t.Fatal(err)
		}
		return evidence
	}
}

// mountedAgain mounts a directory over itself, where that is allowed.
func mountedAgain(t *testing.T) func(evidence, dir string) string {
	return func(evidence, dir string) string {
		switch err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); {
		case errors.Is(err, unix.EPERM):
			return "" // only root may
		case err != nil:
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		return evidence
	}
}

func TestIdleWaitsForMissingResultsToBePutAgain(t *testing.T) {
	parts := places(t)
	for n := range 50 {
		row := remember(t, parts.Ledger, task.Task{ID: envelope.ID(fmt.Sprint("x", n)), Revision: 1, State: task.Queued})
		err := parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Move(row.Seq, row.State, 0, task.Change{To: task.Done, Status: envelope.OK, Result: []byte("the result")})
			return errors.Join(err, tx.MarkPut(row.Seq, true))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	d := serve(t, parts, obliging(make(chan task.Job, 9)), 1)
	d.Look(t.Context())
	if err := d.Idle(t.Context()); err != nil {
		t.Error(err)
	}
	for n := range 50 {
		if id := envelope.ID(fmt.Sprint("x", n)); !parts.Box.HasResult(id) {
			t.Errorf("%s has no result file although the dispatcher is idle", id)
		}
	}
}

func TestAResultThatWasReplacedIsKeptAlsoWhenItsFileIsGone(t *testing.T) {
	e := startEngine(t)
	e.send("t1", "quick")
	e.await("t1", task.Done)
	first := e.result("t1")
	e.must(os.Remove(filepath.Join(e.parts.Box.ResultsDir(), "t1.json"))) // as a power cut may
	e.send("t1", "quick", `"priority":"high"`)
	e.until("the second revision is done", func() bool { row := e.row("t1"); return row.Revision == 2 && row.Put })
	if old, err := e.parts.State.History("t1", 1); err != nil || string(old) != first {
		t.Errorf("History(t1, 1) = %q, %v; want %q", old, err, first)
	}
}
