package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/testtools/slowtest"
)

func init() {
	roles["grows a tree"] = func() { growTree(); ready() }
	roles["grows a tree and stays"] = func() { growTree(); ready(); forever() }
	roles["double fork"] = func() { branch("in a session of its own, with no environment") }
	roles["in a session of its own, with no environment"] = func() { deaf(); sprouted(); forever() }
	roles["deaf child"] = func() { deaf(); sprouted(); forever() }
	roles["daemon that holds stdout"] = func() { sprouted(); forever() }
}

func deaf() { signal.Ignore(syscall.SIGTERM) }

// growTree starts what is hard to end: a child that ignores SIGTERM, one that
// left the session, one that did both and lost its parent and its environment,
// and a daemon that holds stdout.
func growTree() {
	mark := runner.DirVariable + "=" + os.Getenv(runner.DirVariable)
	branch("deaf child", mark)
	branch("double fork")
	branch("daemon that holds stdout", mark)
}

// branch starts a process in a session of its own, and waits until all of it
// has grown. Its working directory is how the test knows it.
func branch(name string, env ...string) {
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	child := exec.Command("/proc/self/exe")
	child.Env, child.Stdout, child.ExtraFiles = append(env, role+"="+name), os.Stdout, []*os.File{writer}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		panic(err)
	}
	writer.Close()
	io.ReadAll(reader)
}

// sprouted tells branch that the process is what it should be.
func sprouted() { os.NewFile(3, "grown").Close() }

// inside lists the processes whose working directory is dir.
func inside(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) && running(pidOf(link)) {
			found = append(found, link)
		}
	}
	return found
}

func pidOf(path string) (pid int) {
	fmt.Sscanf(path, "/proc/%d/", &pid)
	return pid
}

func TestAnEndedRunLeavesNothingOfItsTree(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	k := keepers(t, t.TempDir(), "a")
	neighbour := playing(t, "says so, is told, exits 7")
	detached(t, k, neighbour) // none of it may touch this one
	for _, test := range []struct {
		role    string
		timeout time.Duration
		want    task.Cause
	}{
		{"grows a tree", 0, ""},
		{"grows a tree and stays", 5 * time.Second, task.CauseTimeout},
		{"grows a tree and stays", 0, task.CauseInterrupted},
	} {
		s := playing(t, test.role)
		s.Grace, s.Timeout = 50*time.Millisecond, test.timeout
		ctx, stop := context.WithCancelCause(t.Context())
		got, err := k.Run(ctx, s, func(runner.Process) {
			wait(filepath.Join(s.Dir, "ready"))
			if test.want == task.CauseInterrupted {
				stop(errors.New("cancelled"))
			}
		})
		stop(nil)
		if err != nil || got.Cause != test.want || len(got.Survivors) != 3 {
			t.Errorf("Run(%s) = %+v, %v; want cause %q and 3 survivors", test.role, got, err, test.want)
		}
		if left := inside(t, s.Dir); len(left) > 0 {
			t.Errorf("Run(%s), cause %q: left over: %v", test.role, test.want, left)
		}
	}
	tell(t, neighbour)
	if got, _, err := k.Await(t.Context(), neighbour.Dir); err != nil || got.Code != 7 || len(got.Survivors) > 0 {
		t.Errorf("the neighbour ended with %+v, %v; want status 7", got, err)
	}
}
