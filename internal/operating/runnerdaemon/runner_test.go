package runnerdaemon

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/worktree"
)

const echo = `
agents:
  - id: echo
    exec: {command: [sh, -c, 'echo hello from the runner'], output: text}
`

func TestARunOfARunnerReturnsItsAnswerAndItsOutput(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	r.start()
	token := o.give("echo", nil)
	said, objects := o.outcome(token)
	if said.Result.Status != envelope.OK || said.Result.Output.Summary != "hello from the runner" {
		t.Errorf("result = %+v", said.Result)
	}
	var log bytes.Buffer
	for _, object := range objects {
		if object.Kind == fleet.ObjectLog {
			if err := o.link.Get(t.Context(), "r1", object, &log); err != nil {
				t.Fatal(err)
			}
		}
	}
	if log.String() != "hello from the runner\n" {
		t.Errorf("the log is %q", log.String())
	}
}

const slow = `
agents:
  - id: slow
    idempotent: true
    exec: {command: [sh, -c, 'echo began >>BEGAN; while [ ! -e GO ]; do sleep 0.05; done; echo done'], output: text}
`

// gate writes the configuration of an agent that waits for a file, and counts how often it began.
func gate(r *stubRunner) (begun func() string, open func()) {
	r.t.Helper()
	dir := filepath.Dir(r.file)
	text, err := os.ReadFile(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(strings.NewReplacer("BEGAN", dir+"/began", "GO", dir+"/go").Replace(string(text)))
	begun = func() string {
		text, _ := os.ReadFile(dir + "/began")
		return string(text)
	}
	return begun, func() {
		if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestARunOutlivesTheProgramOfItsRunner(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	begun, open := gate(r)
	r.start()
	token := o.give("slow", nil)
	o.awaitState(token, fleet.Began)
	o.await("a run that began", func() bool { o.moved(); return begun() != "" })
	r.stop()
	open()
	r.start()
	said, _ := o.outcome(token)
	if said.Result.Output.Summary != "done" || begun() != "began\n" {
		t.Errorf("result %+v; the run began %q", said.Result, begun())
	}
	o.await("no files of the settled run", func() bool {
		left, _ := filepath.Glob(r.state("runs", "*"))
		return len(left) == 0
	})
}

func TestAnOutcomeWaitsForTheOwnerAcrossARestart(t *testing.T) {
	o := newOwner(t)
	o.refuse = true
	r := newRunner(t, o, echo)
	r.start()
	token := o.give("echo", nil)
	o.awaitState(token, fleet.Ended)
	r.stop()
	o.mu.Lock()
	o.refuse = false
	o.mu.Unlock()
	r.start()
	if said, _ := o.outcome(token); said.Result.Output.Summary != "hello from the runner" {
		t.Errorf("result %+v", said.Result)
	}
}

func TestAVoidedTokenNeverBegins(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	begun, _ := gate(r)
	r.start()
	o.mu.Lock()
	token := fleet.NewToken(1, 1, 1, 1, "r1") // the next one
	o.void, o.keep = []fleet.Token{token}, true
	o.mu.Unlock()
	o.awaitVoid(token)
	r.stop()
	o.mu.Lock()
	o.void = nil
	o.mu.Unlock()
	r.start()
	o.give("slow", nil)
	next := o.give("slow", func(_ *fleet.Job, w *fleet.Work) { w.RunID = "next" })
	o.awaitState(next, fleet.Began)
	o.await("a run that began", func() bool { o.moved(); return begun() != "" })
	if begun() != "began\n" {
		t.Errorf("began %q; want the second token alone", begun())
	}
}

func TestACommandThatChangedVoidsTheJob(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	r.start()
	o.outcome(o.give("echo", nil))
	var before string
	o.await("an announcement", func() bool { before = o.digest("echo"); return before != "" })
	r.stop()
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	r.write(strings.Replace(string(text), "hello", "goodbye", 1))
	r.start()
	o.await("another digest", func() bool { return o.digest("echo") != before })
	o.awaitVoid(o.give("echo", func(j *fleet.Job, _ *fleet.Work) { j.Digest = before }))
	o.outcome(o.give("echo", nil))
}

func TestWhatARunnerMustNotRunIsVoided(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	r.start()
	for name, change := range map[string]func(*fleet.Job, *fleet.Work){
		"a task that is too sensitive": func(_ *fleet.Job, w *fleet.Work) { w.Task.Sensitivity = envelope.Restricted },
		"a run id with a path":         func(_ *fleet.Job, w *fleet.Work) { w.RunID = "../../x" },
		"a task of another agent":      func(_ *fleet.Job, w *fleet.Work) { w.Task.Agent = "other" },
		"a commit that the runner lacks": func(_ *fleet.Job, w *fleet.Work) {
			w.Worktree = &fleet.Worktree{Repository: "r", Commit: "c", Detail: []byte("{}")}
		},
	} {
		t.Log(name)
		o.awaitVoid(o.give("echo", change))
	}
	o.outcome(o.give("echo", nil))
}

func TestAFullDiskTakesNoJob(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	r.write(strings.Replace(string(text), "min_free_bytes: 0", "min_free_bytes: 1000000000000000", 1))
	r.start()
	o.await("a report of the disk", func() bool { return strings.Contains(o.report.DiskFull, "min_free_bytes") })
}

func TestALostJournalIsAnotherIncarnation(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	begun, _ := gate(r)
	r.start()
	token := o.give("slow", nil)
	o.awaitState(token, fleet.Began)
	o.await("a run that began", func() bool { return begun() != "" })
	before := o.incarnation()
	r.stop()
	for _, name := range []string{"journal.db", "journal.db-wal", "journal.db-shm"} {
		_ = os.Remove(r.state(name))
	}
	r.start()
	o.await("another incarnation", func() bool { return o.report.Incarnation != before })
	if left, _ := filepath.Glob(r.state("runs", "*")); len(left) > 0 {
		t.Errorf("a run that nothing reports is left: %q", left)
	}
}

func TestAnIdempotentRunEndsWithItsLeaseAndAnotherGoesOn(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	_, open := gate(r)
	o.lease = 3 * time.Second
	r.start()
	once := o.give("slow", func(j *fleet.Job, _ *fleet.Work) { j.Idempotent = true })
	o.awaitState(once, fleet.Began)
	o.mu.Lock()
	o.silent = true
	o.mu.Unlock()
	said, _ := o.outcome(once)
	if said.Exit.Cause != task.CauseInterrupted && said.Exit.Cause != task.CauseLease || !said.Retry {
		t.Errorf("exit = %+v; want an end by the lease", said.Exit)
	}
	open()
}

func TestTheKeeperEndsAnIdempotentRunWithoutItsRunner(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	begun, _ := gate(r)
	o.lease = 2 * time.Second
	r.start()
	token := o.give("slow", func(j *fleet.Job, _ *fleet.Work) { j.Idempotent = true })
	o.awaitState(token, fleet.Began)
	o.await("a run that began", func() bool { return begun() != "" })
	r.stop()
	o.await("the end of the run", func() bool {
		_, err := os.Stat(r.state("runs", "run-1", "exit.json"))
		return err == nil
	})
	r.start()
	said, _ := o.outcome(token)
	if said.Exit.Cause != task.CauseLease || !said.Retry || said.Result.Error.Kind != envelope.RunLost {
		t.Errorf("exit %+v, retry %t, error %+v", said.Exit, said.Retry, said.Result.Error)
	}
}

func TestTheOwnerEndsARun(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	gate(r)
	r.start()
	token := o.give("slow", nil)
	o.awaitState(token, fleet.Began)
	if err := o.link.Order("r1", fleet.Order{Epoch: 1, Cancel: token}); err != nil {
		t.Fatal(err)
	}
	if said, _ := o.outcome(token); said.Exit.Cause != task.CauseInterrupted {
		t.Errorf("exit = %+v", said.Exit)
	}
}

func TestOutputIsSentWhileItIsFollowed(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, "\nagents:\n  - id: talk\n"+
		"    exec: {command: [sh, -c, 'echo a line; while [ ! -e GO ]; do sleep 0.05; done; echo the last line'], output: text}\n")
	_, open := gate(r)
	r.start()
	token := o.give("talk", nil)
	o.awaitState(token, fleet.Began)
	lines := make(chan string, 10)
	stop, err := o.link.Follow("r1", token, func(l fleet.LogLine) { lines <- string(l.Text) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := o.link.Order("r1", fleet.Order{Epoch: 1, Follow: token, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		select {
		case line := <-lines:
			if line != want {
				t.Errorf("got %q; want %q", line, want)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%q did not come", want)
		}
	}
	expect("a line\n")
	open()
	o.outcome(token)
	expect("the last line\n")
}

func TestARunEndsAtItsAllowanceByItself(t *testing.T) {
	o := newOwner(t)
	script := `echo "{\"cost_used\":{\"tokens\":50,\"usd_cents\":0}}" >>"$MAILBOX_PROGRESS_FILE"; sleep 60`
	r := newRunner(t, o, "\nagents:\n  - id: costly\n    exec: {command: [sh, -c, '"+script+"'], output: envelope}\n")
	r.start()
	tokens := int64(10)
	token := o.give("costly", func(_ *fleet.Job, w *fleet.Work) { w.Allowance.Tokens = &tokens })
	if said, _ := o.outcome(token); said.Result.Error.Kind != envelope.BudgetExceeded {
		t.Errorf("result = %+v", said.Result)
	}
}

func TestSecretsOfARunnerReachNeitherMessagesNorObjects(t *testing.T) {
	const secret = "canary-4711-value"
	t.Setenv("TRAINER_TOKEN", secret)
	o := newOwner(t)
	r := newRunner(t, o, "\nagents:\n  - id: secretive\n    exec: {command: [sh, -c, "+
		"'test -n \"$TRAINER_TOKEN\" && : canary-4713 && echo used'], output: text, env: [TRAINER_TOKEN, \"OTHER=canary-4712-value\"]}\n")
	r.start()
	token := o.give("secretive", nil)
	said, _ := o.outcome(token)
	if said.Result.Output.Summary != "used" {
		t.Fatalf("result = %+v", said.Result)
	}
	r.stop()
	o.mu.Lock() // a late report may still come
	text, err := fleet.EncodeLarge([]any{o.announced, o.report, o.done, o.notes})
	o.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(o.store, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			more, _ := os.ReadFile(path)
			text = append(text, more...)
		}
		return nil
	})
	if err != nil || bytes.Contains(text, []byte("canary-471")) {
		t.Errorf("a secret left the runner (%v)", err)
	}
}

func TestARunInAWorktreeReturnsAPatch(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so no repository can be made: apt-get install git")
	}
	dir := t.TempDir()
	for _, args := range []string{"init -q", "config user.email a@b", "config user.name a", "commit -q --allow-empty -m start"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		if cmd.Dir = dir; cmd.Run() != nil {
			t.Fatal(args)
		}
	}
	top := t.TempDir()
	home := worktree.Store{Dir: filepath.Join(top, "w"), Records: filepath.Join(top, "r")}
	b, err := home.Bundle(t.Context(), worktree.BundleRequest{Source: dir, File: filepath.Join(top, "bundle")})
	if err != nil {
		t.Fatal(err)
	}
	o := newOwner(t)
	r := newRunner(t, o, "\nagents:\n  - id: writer\n"+
		"    exec: {command: [sh, -c, 'echo new >new.txt; echo wrote'], output: text, worktree: true}\n")
	r.start()
	file, err := os.Open(filepath.Join(top, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	object, err := o.link.Put(t.Context(), "r1", fleet.ObjectBundle, "bundle-1", "", file)
	if err != nil {
		t.Fatal(err)
	}
	token := o.give("writer", func(_ *fleet.Job, w *fleet.Work) {
		detail, _ := json.Marshal(b)
		w.Worktree = &fleet.Worktree{Repository: b.Repository, Commit: b.Commit, Bundle: &object, Detail: detail}
	})
	said, objects := o.outcome(token)
	var patch bytes.Buffer
	for _, object := range objects {
		if object.Kind == fleet.ObjectPatch {
			if err := o.link.Get(t.Context(), "r1", object, &patch); err != nil {
				t.Fatal(err)
			}
		}
	}
	runDir := t.TempDir()
	c, err := home.Adopt(t.Context(), worktree.Request{Run: "run-1", Task: "t1", Revision: 1, Attempt: 1, Source: dir}, runDir,
		worktree.Returned{Bundle: b, Patch: patch.Bytes(), Digest: said.Patch})
	if err != nil {
		t.Fatalf("adopt: %v; result %+v", err, said.Result)
	}
	if err := home.Apply(t.Context(), dir, nil, patch.Bytes()); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "new.txt")); string(text) != "new\n" || len(c.Work.Summary.Files) != 1 {
		t.Errorf("new.txt = %q, summary %+v", text, c.Work.Summary)
	}
	o.await("the commit in the announcement", func() bool { return len(o.announced.Commits[b.Repository]) == 1 })
	o.await("no run", func() bool { return len(o.report.Runs) == 0 })
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(r.file), "worktrees", "*")); len(left) > 0 {
		t.Errorf("a settled run left %q", left)
	}
}
