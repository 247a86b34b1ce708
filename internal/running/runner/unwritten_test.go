package runner_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/running/runner"
	"mailboxd/internal/testtools/fault"
	"mailboxd/internal/testtools/slowtest"
)

// The environment that has writes of a keeper fail.
const (
	failingWrites = "RUNNER_TEST_FAILING_WRITES" // their names, separated by commas
	failingErrno  = "RUNNER_TEST_FAILING_ERRNO"
	failingWhile  = "RUNNER_TEST_FAILING_WHILE" // as long as this file is there
)

// failWrites does in a keeper what failKeeperWrites asks for.
func failWrites() {
	names, flag := strings.Split(os.Getenv(failingWrites), ","), os.Getenv(failingWhile)
	errno, _ := strconv.Atoi(os.Getenv(failingErrno)) // 0 where nothing is to fail
	if errno == 0 {
		return
	}
	fault.FailReads(func(write string) error {
		if _, err := os.Stat(flag); err != nil || !slices.Contains(names, write) {
			return nil
		}
		return syscall.Errno(errno)
	})
}

// failKeeperWrites has writes of keepers that are started from now on fail, until end
// is called.
func failKeeperWrites(t *testing.T, errno syscall.Errno, names string) (end func()) {
	t.Helper()
	flag := filepath.Join(t.TempDir(), "failing")
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(failingWrites, names)
	t.Setenv(failingErrno, strconv.Itoa(int(errno)))
	t.Setenv(failingWhile, flag)
	return func() {
		if err := os.Remove(flag); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARunWhoseOutputFilesTheKeeperCannotMakeHasNotBegun(t *testing.T) {
	for _, name := range []string{"create stdout", "create stderr"} {
		for _, errno := range []syscall.Errno{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.EMFILE, unix.ENOMEM, unix.EACCES} {
			end := failKeeperWrites(t, errno, name)
			k, s := keepers(t, t.TempDir(), "a"), playing(t, "exit3")
			_, err := k.Run(t.Context(), s, func(runner.Process) { t.Error("a process was started") })
			if _, refused := errors.AsType[*runner.SpawnError](err); !refused || !errors.Is(err, errno) {
				t.Errorf("%s: Run = %v; want a SpawnError of %v", name, err, errno)
			}
			if _, err := os.Lstat(filepath.Join(s.Dir, runner.StdoutFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: stdout is there (%v), so a later reader takes the run for one that may have begun", name, err)
			}
			end()
			if got := keptRun(t, k, s); got.Code != 3 {
				t.Errorf("%s: the next Run = %+v; want status 3", name, got)
			}
		}
	}
}

func TestAKeeperWritesExitJSONAsSoonAsItCan(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	for _, errno := range []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EACCES} {
		end := failKeeperWrites(t, errno, "write exit.json")
		dir := t.TempDir()
		k, err := runner.OpenKeepers(dir, "a", []string{"keeper", "keeper"})
		if err != nil {
			t.Fatal(err)
		}
		s := playing(t, "exit3")
		if got, err := k.Run(t.Context(), s, nil); err == nil || got.Code != 3 {
			t.Errorf("%v: Run = %+v, %v; want status 3 and an error", errno, got, err)
		}
		if _, known, err := runner.ReadExit(s.Dir); known || err != nil {
			t.Errorf("%v: ReadExit = %v, %v; want that nothing is there", errno, known, err)
		}
		if got, known, err := k.Await(t.Context(), s.Dir); err != nil && !known || got.Code != 3 {
			t.Errorf("%v: Await = %+v, %v, %v; want status 3", errno, got, known, err)
		}
		left := whenKeeperLeaves(t, dir)
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		end()
		left()
		if got, known, err := runner.ReadExit(s.Dir); err != nil || !known || got.Code != 3 {
			t.Errorf("%v: ReadExit = %+v, %v, %v; want status 3", errno, got, known, err)
		}
	}
}
