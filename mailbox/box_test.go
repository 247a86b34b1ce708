package mailbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/mailbox"
)

func TestOpenMakesMissingDirectoriesForTheirOwnerOnly(t *testing.T) { // row 31
	box := open(t)
	for _, name := range []string{"", "tasks", "results", ".mailboxd", ".mailboxd/tmp"} {
		info, err := os.Stat(filepath.Join(box.Path(), name))
		must(t, err)
		if got := info.Mode(); got != os.ModeDir|0o700 {
			t.Errorf("mode of %q = %v, want drwx------", name, got)
		}
	}
	openAt(t, box.Path()) // and uses existing directories
}

func TestOpenResolvesSymlinksInThePath(t *testing.T) {
	box := open(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(box.Path(), link))
	if got := openAt(t, link).Path(); got != box.Path() {
		t.Errorf("Path = %s, want %s", got, box.Path())
	}
}

func TestOpenRefusesWithARemedy(t *testing.T) { // rows 31 and 32
	outside := t.TempDir()
	for _, test := range []struct {
		name    string
		prepare func(root string) error
		want    string
	}{
		{"a file", func(root string) error { return errors.Join(os.Remove(root), os.WriteFile(root, nil, 0o600)) }, "not a directory"},
		{"world-writable", func(root string) error { return os.Chmod(root, 0o777) }, "chmod o-w ROOT"},
		{"world-writable and sticky", func(root string) error { return os.Chmod(root, 0o777|os.ModeSticky) }, "chmod o-w ROOT"},
		{"world-writable results", func(root string) error {
			return errors.Join(os.Mkdir(root+"/results", 0o700), os.Chmod(root+"/results", 0o777))
		}, "chmod o-w ROOT/results"},
		{"results a file", func(root string) error { return os.WriteFile(root+"/results", nil, 0o600) }, "mv ROOT/results ROOT/results.old"},
		{"results leads outside", func(root string) error { return os.Symlink(outside, root+"/results") }, "mv ROOT/results ROOT/results.old"},
		{"tasks leads outside", func(root string) error { return os.Symlink("../..", root+"/tasks") }, "mv ROOT/tasks ROOT/tasks.old"},
		{"tasks leads nowhere", func(root string) error { return os.Symlink("nowhere", root+"/tasks") }, "mv ROOT/tasks ROOT/tasks.old"},
		{"the home directory", func(root string) error { t.Setenv("HOME", root); return nil }, "ROOT must not be a mailbox"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "box")
			must(t, os.Mkdir(root, 0o700))
			must(t, test.prepare(root))
			box, err := mailbox.Open(root)
			if err == nil {
				box.Close()
			}
			want := strings.ReplaceAll(test.want, "ROOT", root)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Open = %v; want an error with %q", err, want)
			}
		})
	}
	if _, err := mailbox.Open("/"); err == nil {
		t.Error("Open(/) = nil, want an error")
	}
	if _, err := mailbox.Open(""); err == nil {
		t.Error("Open without a path = nil, want an error")
	}
}

func TestOpenRefusesADirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	root := t.TempDir()
	must(t, os.Chown(root, 4711, -1))
	if _, err := mailbox.Open(root); err == nil || !strings.Contains(err.Error(), "belongs to user 4711") {
		t.Errorf("Open = %v; want an error that names user 4711", err)
	}
}

func TestOpenTakesADirectoryThatIsASymlinkInside(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(root+"/elsewhere", 0o700))
	must(t, os.Symlink("elsewhere", root+"/tasks"))
	box := openAt(t, root)
	write(t, root+"/elsewhere/x.jsonl", "a\n")
	tail(t, box, mailbox.TailOptions{}).want("a")
}

func TestWarningsHaveARemedy(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "mailbox-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	must(t, os.Chmod(root, 0o770))
	got := openAt(t, root).Warnings()
	for _, want := range []string{"chmod g-w " + root, `"mailboxd init"`} {
		if !slices.ContainsFunc(got, func(w *mailbox.UnfitError) bool { return strings.Contains(w.Hint, want) }) {
			t.Errorf("Warnings = %q; want one with %q", got, want)
		}
	}
}

func TestASecondServerGetsThePIDOfTheFirst(t *testing.T) {
	box := open(t)
	first := exec.Command("/proc/self/exe", box.Path())
	first.Env = append(os.Environ(), "MAILBOX_TEST_PLAYS=lock")
	stop, err := first.StdinPipe()
	must(t, err)
	out, err := first.StdoutPipe()
	must(t, err)
	must(t, first.Start())
	defer func() {
		stop.Close()
		first.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the first says %q, %v", line, err)
	}

	err = box.Lock()
	locked, ok := errors.AsType[*mailbox.LockedError](err)
	if !ok || locked.PID != first.Process.Pid {
		t.Fatalf("Lock = %v; want a LockedError with process %d", err, first.Process.Pid)
	}
	if want := fmt.Sprintf("%s is served by mailboxd, process %d", box.Path(), locked.PID); err.Error() != want {
		t.Errorf("Lock = %q, want %q", err, want)
	}
	stop.Close()
	io.Copy(io.Discard, out)
	first.Wait()
	if err := box.Lock(); err != nil {
		t.Errorf("Lock after the first ended = %v, want nil", err)
	}
}

func TestLockWaitsForTheDescriptorsOfAKilledProcess(t *testing.T) {
	box := open(t)
	cmd := exec.Command(os.Args[0], box.Path())
	cmd.Env = append(os.Environ(), "MAILBOX_TEST_PLAYS=die holding")
	if out, err := cmd.Output(); err != nil || string(out) != "<nil>\n" {
		t.Fatalf("the first process says %q, %v", out, err)
	}
	if err := box.Lock(); err != nil {
		t.Errorf("Lock after its holder died = %v, want nil", err)
	}
}

func TestLockRemovesTemporaryFiles(t *testing.T) {
	box := open(t)
	left := box.Path() + "/.mailboxd/tmp/left"
	write(t, left, "half")
	must(t, box.Lock())
	must(t, box.Lock()) // once more is fine
	if _, err := os.Stat(left); err == nil {
		t.Error("a temporary file outlives Lock")
	}
}

func TestRefreshMakesAndLocksAReplacedMailboxAnew(t *testing.T) { // row 32
	for _, test := range []struct {
		name   string
		change func(root string) error
	}{
		{"removed", os.RemoveAll},
		{"replaced", func(root string) error { return errors.Join(os.Rename(root, root+".old"), os.Mkdir(root, 0o700)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			box := open(t)
			must(t, box.Lock())
			if replaced, err := box.Refresh(); replaced || err != nil {
				t.Fatalf("Refresh of what did not change = %v, %v; want false, nil", replaced, err)
			}
			must(t, test.change(box.Path()))
			if replaced, err := box.Refresh(); !replaced || err != nil {
				t.Fatalf("Refresh = %v, %v; want true, nil", replaced, err)
			}
			must(t, box.PutResult("t", []byte("{}"), 0o600))
			if got := read(t, box.ResultsDir()+"/t.json"); got != "{}" {
				t.Errorf("result in the new mailbox = %q, want {}", got)
			}
			if err := openAt(t, box.Path()).Lock(); err == nil {
				t.Error("the new mailbox is not locked")
			}
		})
	}
}

func TestRefreshMakesALostDirectoryAnew(t *testing.T) { // row 32
	for _, name := range []string{"tasks", "results"} {
		box := open(t)
		must(t, box.Lock())
		must(t, os.RemoveAll(filepath.Join(box.Path(), name)))
		if replaced, err := box.Refresh(); !replaced || err != nil {
			t.Errorf("Refresh without %s = %v, %v; want true, nil", name, replaced, err)
		}
		must(t, box.PutResult("t", []byte("{}"), 0o600))
		if err := openAt(t, box.Path()).Lock(); err == nil {
			t.Error("the mailbox is not locked any more")
		}
	}
}

func TestRefreshObeysTheRulesOfOpen(t *testing.T) {
	box := open(t)
	must(t, os.RemoveAll(box.Path()))
	must(t, os.Mkdir(box.Path(), 0o700))
	must(t, os.Chmod(box.Path(), 0o777))
	if _, err := box.Refresh(); err == nil {
		t.Error("Refresh took a world-writable directory")
	}
}
