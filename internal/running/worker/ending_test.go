package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/running/worker"
)

func TestAQuestionThatHangsCostsItsNeighboursNothing(t *testing.T) {
	s := spec(t.TempDir(), "picky")
	s.InFlight = 3
	p, n := open(t, s)
	hang := question("hang")
	hang.Timeout = 50 * time.Millisecond
	var asking sync.WaitGroup
	asking.Go(func() {
		if got, err := p.Ask(t.Context(), hang); !errors.Is(err, worker.ErrTimeout) || got.PID == 0 || got.Wall < hang.Timeout {
			t.Errorf("Ask(hang) = %+v, %v; want ErrTimeout", got, err)
		}
	})
	askAll(t, p, 50)
	asking.Wait()
	askAll(t, p, 50) // by another process
	p.Close(time.Second)
	if !strings.Contains(n.String(), "did not answer in time") {
		t.Errorf("noticed %s; want the worker that hangs", n)
	}
}

func TestADeadlineCountsAlsoBeforeAProcessHasTheQuestion(t *testing.T) {
	p, _ := open(t, spec(t.TempDir(), "deaf"))
	first, second := question("t1"), question("t2")
	first.Deadline, second.Deadline = time.Now().Add(200*time.Millisecond), time.Now().Add(100*time.Millisecond)
	var asking sync.WaitGroup
	had := atomic.Int64{}
	for _, q := range []worker.Question{first, second} {
		asking.Go(func() {
			got, err := p.Ask(t.Context(), q)
			if !errors.Is(err, worker.ErrDeadline) {
				t.Errorf("Ask(%s) = %v; want ErrDeadline", q.ID, err)
			}
			if got.PID != 0 {
				had.Add(1)
			}
		})
	}
	asking.Wait()
	if had.Load() > 2 || had.Load() < 1 {
		t.Errorf("%d questions were had; want one, or both after another", had.Load())
	}
}

// Row 40: a worker that never reads, and questions larger than a pipe.
func TestOneThatNeverReadsBlocksNobody(t *testing.T) {
	s := spec(t.TempDir(), "deaf")
	s.InFlight = 4
	p, _ := open(t, s)
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			q := question(fmt.Sprint("t", i))
			q.Line = append(q.Line, bytes.Repeat([]byte(" "), 1<<20)...)
			q.Timeout, q.Deadline = 50*time.Millisecond, time.Now().Add(time.Second)
			if _, err := p.Ask(t.Context(), q); err == nil {
				t.Errorf("Ask(%s) has an answer; want none", q.ID)
			}
		})
	}
	asking.Wait()
}

func TestWhatCannotBeStartedSaysWhy(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nonexistent/worker", "no-such-worker-on-path", text} {
		s := spec(t.TempDir(), "")
		s.Argv, s.InFlight = []string{path}, 4
		p, _ := open(t, s)
		for range 3 {
			got, err := p.Ask(t.Context(), question("t1"))
			if start, ok := errors.AsType[*worker.StartError](err); !ok || start.Command != path || got.PID != 0 {
				t.Errorf("Ask = %+v, %v; want that %s cannot be started", got, err, path)
			}
		}
		if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
			t.Errorf("%v is left; want nothing", left)
		}
	}
}

func TestTheEndOfAContextEndsTheWait(t *testing.T) {
	s := spec(t.TempDir(), "picky")
	p, _ := open(t, s)
	if _, err := p.Ask(t.Context(), question("warm")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the daemon is shutting down")
	var asking sync.WaitGroup
	for _, id := range []string{"hang", "queued"} {
		asking.Go(func() {
			if _, err := p.Ask(ctx, question(id)); err != nil && !errors.Is(err, why) {
				t.Errorf("Ask(%s) = %v; want %v", id, err, why)
			}
		})
	}
	cancel(why)
	asking.Wait()
	if got, err := p.Ask(ctx, question("late")); !errors.Is(err, why) || got.PID != 0 {
		t.Errorf("Ask = %+v, %v; want nothing asked", got, err)
	}
}

func TestClosingKillsWhatDoesNotEndByItself(t *testing.T) {
	s := spec(t.TempDir(), "stubborn")
	p, _ := open(t, s)
	q := question("t1")
	q.Timeout = 20 * time.Millisecond
	got, err := p.Ask(t.Context(), q)
	if !errors.Is(err, worker.ErrTimeout) {
		t.Fatalf("Ask = %v; want ErrTimeout", err)
	}
	p.Close(10 * time.Millisecond)
	gone(t, got.PID)
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Errorf("%v is left; want nothing", left)
	}
}

func TestChildrenEndWithTheirWorker(t *testing.T) {
	p, _ := open(t, spec(t.TempDir(), "parent"))
	got, err := p.Ask(t.Context(), question("t1"))
	if err != nil {
		t.Fatal(err)
	}
	child := pidIn(t, got)
	p.Close(time.Second)
	gone(t, got.PID)
	fd, err := unix.PidfdOpen(child, 0)
	if err != nil {
		return // gone, and reaped by anyone who reaps orphans here
	}
	defer unix.Close(fd)
	awaitExit(t, fd)
}

// A daemon that is killed at any moment leaves no worker.
func TestAKilledDaemonLeavesNoWorker(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(self, "play", "daemon", t.TempDir())
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil || pid == 0 {
		t.Fatalf("the daemon's worker is %d, %v", pid, err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	daemon.Wait()
	awaitExit(t, fd)
}

// awaitExit blocks until the process of a descriptor has ended.
func awaitExit(t *testing.T, pidfd int) {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 10_000)
	if err != nil || n != 1 {
		t.Errorf("the process still runs after ten seconds (%d, %v)", n, err)
	}
}

func gone(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}
