package runner_test

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/testtools/fault"
)

func TestARunIsLeftAloneWhileItsKeeperCannotBeReached(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
		k := keepers(t, t.TempDir(), "a")
		s := playing(t, "says so, is told, exits 7")
		self := detached(t, k, s)
		undo := fault.FailReads(func(read string) error {
			if read == "keeper" {
				return errno
			}
			return nil
		})
		_, _, err := k.Await(t.Context(), s.Dir)
		undo()
		if _, unread := errors.AsType[*runner.UnreadError](err); !unread || !runner.Alive(self) {
			t.Errorf("%v: Await = %v, and the process lives: %v; want an UnreadError, true", errno, err, runner.Alive(self))
		}
		tell(t, s)
		if got, known, err := k.Await(t.Context(), s.Dir); err != nil || !known || got.Code != 7 {
			t.Errorf("%v: Await once more = %+v, %v, %v; want status 7", errno, got, known, err)
		}
	}
}

func TestExitJSONIsKeptForARunWhoseEndNobodyWrote(t *testing.T) {
	dir := t.TempDir()
	want := task.Exit{Code: 7, PID: 1}
	for range 2 {
		if err := runner.KeepExit(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, known, err := runner.ReadExit(dir); err != nil || !known || got.Code != 7 {
		t.Errorf("ReadExit = %+v, %v, %v; want status 7", got, known, err)
	}
}
