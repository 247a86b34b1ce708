package mailbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/mailbox"
)

func TestAnUnreadableFileIsReportedOnceAndRetried(t *testing.T) { // row 33
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	write(t, path, "a\n")
	write(t, box.TasksDir()+"/y.jsonl", "b\n")
	must(t, os.Chmod(path, 0))
	notified := 0
	r := tail(t, box, mailbox.TailOptions{Notice: func(string, error) { notified++ }})
	r.want("b")
	r.want()
	if notified != 1 {
		t.Errorf("told %d times, want once", notified)
	}
	must(t, os.Chmod(path, 0o600))
	r.want("a")
}

func TestTheTailRecoversFromAFullTableOfFiles(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 3
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	batch, err := r.Next()
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if err == nil {
		t.Errorf("Next without a free file = %+v, nil; want an error", batch)
	}
	r.want("a")
}

// asNobody runs the calling test again, as the user nobody, for whom permissions hold.
func asNobody(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o777))
	}
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	binary := filepath.Join(dir, "test")
	must(t, os.WriteFile(binary, self, 0o755))
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
