package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/retention"
	"mailboxd/mailbox"
)

// write appends to the task file of the first run of the task "own".
func (e *engine) write(text string) {
	e.t.Helper()
	run := e.runs("own")[0]
	appendText(e, mailbox.RunFile{Run: run.ID, ID: "own", Revision: 1, Attempt: 1}.Path(e.parts.State.Path()), text)
}

func appendText(e *engine, path, text string) {
	_, err := mailbox.RunFilesDir(e.parts.State.Path())
	if err != nil {
		e.t.Error(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		e.t.Error(err)
		return
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		e.t.Error(err)
	}
}

// runFiles lists the task files that are not put away.
func (e *engine) runFiles() []string {
	files, err := filepath.Glob(filepath.Join(e.dir, "state", "sandboxes", "tasks", "*"))
	e.must(err)
	return files
}

// inRun starts the task "own" of the agent "chief", which works until it is let go. The agent "broken" fails.
func inRun(t *testing.T) (e *engine, letGo func()) {
	return inRunWith(t, mailbox.TailOptions{})
}

func inRunWith(t *testing.T, opts mailbox.TailOptions) (e *engine, letGo func()) {
	e, over := newEngine(t), make(chan bool)
	e.dirs, e.opts.Tail = true, opts
	e.plays["chief"] = func(ctx context.Context, j task.Job) task.Outcome {
		select {
		case <-over:
			return decision(j, "done")
		case <-ctx.Done():
			return cut(ctx)
		}
	}
	e.plays["broken"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "no")
		o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: envelope.AgentError, Message: "no"}
		return o
	}
	e.mode = envelope.Enforce
	e.start()
	e.send("own", "chief")
	e.await("own", task.Running)
	return e, func() { close(over) }
}

func TestALineInTheTaskFileOfARunIsOfThatRun(t *testing.T) {
	e, letGo := inRun(t)
	e.send("second", "slow") // a task of nobody's run
	e.write(requestOf("chief", "child", "slow") + "\n" +
		requestOf("tester", "forged", "quick") + "\n" +
		requestOf("chief", "strayed", "quick", `"metadata":{"mbx.parent_task_id":"second"}`) + "\n" +
		word{mid: "said", p: "REQ", from: "chief", to: "quick"}.line() + "\n" +
		word{mid: "lied", p: "REQ", from: "ann", to: "quick"}.line() + "\n")
	e.Look(t.Context())
	own := e.row("own")
	for id, want := range map[string]envelope.Kind{
		"child": "", "forged": envelope.IdentityMismatch, "strayed": envelope.IdentityMismatch, "said": "", "lied": envelope.IdentityMismatch,
	} {
		row := e.row(id)
		if row.Parent != own.Seq || row.Requester != "chief" || row.Kind != want {
			t.Errorf("%s is of %q below task %d, with %q; want it of chief below %d, with %q", id, row.Requester, row.Parent, row.Kind, own.Seq, want)
		}
	}
	if row := e.row("second"); row.Parent != 0 {
		t.Errorf("a line of the mailbox is below task %d", row.Parent)
	}
	e.must(e.Cancel(t.Context(), "child", me))
	letGo()
	e.await("own", task.Done)
}

func TestARunReplacesNoTaskOfOthers(t *testing.T) {
	e, letGo := inRun(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("theirs", "quick")
	e.wantHeld("theirs", task.Paused)
	e.write(requestOf("chief", "theirs", "slow") + "\n" + requestOf("chief", "own", "slow") + "\n" + requestOf("ann", "theirs", "slow") + "\n" +
		requestOf("chief", "mine", "quick") + "\n")
	e.Look(t.Context())
	if row := e.row("theirs"); row.Revision != 1 || row.Agent != "quick" {
		t.Errorf("theirs has revision %d for %s; want the first one", row.Revision, row.Agent)
	}
	if row := e.row("own"); row.Revision != 1 {
		t.Errorf("own has revision %d; want 1", row.Revision)
	}
	if n := e.countOf("theirs", task.KindTaskDuplicateConflict); n != 2 {
		t.Errorf("%d conflicts are recorded; want 2", n)
	}
	e.write(requestOf("chief", "mine", "slow") + "\n")
	e.Look(t.Context())
	if row := e.row("mine"); row.Revision != 2 {
		t.Errorf("mine has revision %d; want 2, since the run asked for it", row.Revision)
	}
	e.must(e.Cancel(t.Context(), "mine", me))
	letGo()
}

func TestLinesOfARunCountAfterItsEnd(t *testing.T) {
	e, letGo := inRun(t)
	e.write(requestOf("chief", "whole", "quick") + "\n" + requestOf("chief", "without-newline", "quick"))
	letGo()
	own := e.await("own", task.Done)
	e.Look(t.Context())
	e.Look(t.Context())
	for _, id := range []string{"whole", "without-newline"} {
		if row := e.await(id, task.Done); row.Parent != own.Seq || row.Status != envelope.OK {
			t.Errorf("%s is %s below task %d; want it done below %d", id, row.Status, row.Parent, own.Seq)
		}
	}
	if left := e.runFiles(); left != nil {
		t.Errorf("task files are left: %q", left)
	}
	if _, err := os.Stat(filepath.Join(e.parts.State.RunDir("own", 1, 1), mailbox.KeptTasks)); err != nil {
		t.Errorf("the run directory lacks the file: %v", err)
	}
}

func TestARestartReadsTheTaskFileOfARunOnce(t *testing.T) {
	e, letGo := inRun(t)
	e.write(requestOf("chief", "before", "quick") + "\n")
	e.Look(t.Context())
	e.await("before", task.Done)
	e.write(requestOf("chief", "meanwhile", "quick") + "\n")
	letGo()
	e.await("own", task.Done)
	e.restart()
	e.Look(t.Context())
	e.await("meanwhile", task.Done)
	e.Look(t.Context())
	e.restart()
	e.Look(t.Context())
	for _, id := range []string{"before", "meanwhile"} {
		e.wantEvent(id, string(task.KindTaskAccepted))
		if n := e.countOf(id, task.KindTaskDuplicate); n != 0 {
			t.Errorf("%s was read %d times more", id, n)
		}
	}
	if left := e.runFiles(); left != nil {
		t.Errorf("task files are left: %q", left)
	}
}

func TestAFileOfAnUnknownRunStartsNothing(t *testing.T) {
	e := startEngine(t)
	e.send("known", "quick")
	e.await("known", task.Done)
	name := mailbox.RunFile{Run: "11111111-2222-3333-4444-555555555555", ID: "known", Revision: 1, Attempt: 1}
	appendText(e, name.Path(e.parts.State.Path()), requestOf("quick", "planted", "slow")+"\n"+requestOf("quick", "known", "slow")+"\n")
	e.Look(t.Context())
	if row := e.row("planted"); row.Kind != envelope.Unauthorized || row.Attempt != 0 {
		t.Errorf("planted is %s, %q; want it refused as unauthorized", row.State, row.Kind)
	}
	if row := e.row("known"); row.Revision != 1 {
		t.Errorf("known has revision %d; want 1", row.Revision)
	}
	e.Look(t.Context())
	e.Look(t.Context())
	if left := e.runFiles(); left != nil {
		t.Errorf("task files are left: %q", left)
	}
}

func TestRetentionForgetsHowFarTaskFilesOfRunsWereRead(t *testing.T) {
	e, letGo := inRun(t)
	e.write(requestOf("chief", "child", "quick") + "\n")
	letGo()
	e.await("own", task.Done)
	e.Look(t.Context())
	e.Look(t.Context())
	e.restart() // which finds that the file is gone
	e.Look(t.Context())
	e.collect(retention.Policy{}, time.Now())
	files, err := e.parts.Ledger.Files(t.Context())
	e.must(err)
	for _, f := range files {
		if mailbox.Cursor(f).IsRunFile() {
			t.Errorf("the ledger remembers %+v", f)
		}
	}
	if n := e.events(task.KindFileGone); n != 0 {
		t.Errorf("%d events say that a file is gone; want none for a file that was read", n)
	}
}

func TestAnAgentThatTakesRightsFromItsTaskFileStopsNoIntake(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	for _, mode := range []os.FileMode{0o400, 0o200, 0} {
		e, letGo := inRun(t)
		e.write(requestOf("chief", "child", "quick") + "\n" + requestOf("chief", "last", "quick"))
		e.must(os.Chmod(e.runFiles()[0], mode))
		letGo()
		e.await("own", task.Done)
		e.Look(t.Context())
		e.send("other", "quick")
		for _, id := range []string{"other", "child", "last"} {
			e.Look(t.Context())
			e.await(id, task.Done)
		}
		e.Look(t.Context())
		if left := e.runFiles(); left != nil {
			t.Errorf("mode %v: task files are left: %q", mode, left)
		}
	}
}

// asNobody runs the test that calls it again, as a user whom permissions bind.
func asNobody(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dispatch-user-*") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	binary := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(binary, self, 0o755), os.Chmod(binary, 0o755), os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestATaskFileThatCannotBePutAwayStopsNoIntake(t *testing.T) {
	e, letGo := inRun(t)
	e.write(requestOf("chief", "child", "quick") + "\n")
	obstacle := filepath.Join(e.parts.State.RunDir("own", 1, 1), mailbox.KeptTasks, "directory")
	e.must(os.MkdirAll(obstacle, 0o700))
	letGo()
	e.await("own", task.Done)
	e.Look(t.Context())
	e.send("other", "quick")
	e.Look(t.Context())
	e.await("child", task.Done)
	e.await("other", task.Done)
	if n := len(e.Faults()); n != 1 {
		t.Errorf("%d faults are reported; want one about the file", n)
	}
	e.must(os.RemoveAll(filepath.Dir(obstacle)))
	e.Look(t.Context())
	if left, n := e.runFiles(), len(e.Faults()); left != nil || n != 0 {
		t.Errorf("task files %q and %d faults are left", left, n)
	}
}

func TestTheLinesOfARunLetTheMailboxHaveItsTurn(t *testing.T) {
	e, letGo := inRunWith(t, mailbox.TailOptions{BatchLines: 1})
	var all strings.Builder
	for n := range 100 {
		fmt.Fprintln(&all, requestOf("chief", fmt.Sprintf("child-%d", n), "slow"))
	}
	e.write(all.String())
	e.send("other", "quick")
	e.Look(t.Context())
	if other, last := e.row("other").Seq, e.row("child-99").Seq; other == 0 || last == 0 || other > last {
		t.Errorf("the line of the mailbox has the number %d, and the last one of the run %d; want it before", other, last)
	}
	letGo()
}
