package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A keeper that is killed while it starts a process leaves a child that has the
// keeper's descriptors and nothing of the run yet, for as long as it takes the
// kernel to execute the program.
func TestALostRunIsNotOverBeforeItsProcessHasBecomeWhatItIs(t *testing.T) {
	dir, run := t.TempDir(), t.TempDir()
	k := keepers(t, dir, "a")
	lock, err := os.Create(filepath.Join(dir, "killed.lock"))
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sh", "-c", `sleep 0.3 3>&-; MAILBOX_RUN_DIR="$0" exec sleep 1000 3>&-`, run)
	child.ExtraFiles = []*os.File{lock}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close() // the child has it now
	exit, known, err := k.Await(t.Context(), run)
	if err != nil || known || len(exit.Survivors) != 1 || exit.Survivors[0].PID != child.Process.Pid {
		t.Errorf("Await = %+v, %v, %v; want process %d found and ended", exit, known, err, child.Process.Pid)
	}
	_ = child.Process.Kill() // if it was not ended
	_ = child.Wait()         // it was killed, one way or the other
}
