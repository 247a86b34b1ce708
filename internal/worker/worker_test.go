package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
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

	"mailboxd/envelope"
	"mailboxd/internal/worker"
)

var noContext = context.Background()

func question(id string) worker.Question {
	return worker.Question{ID: envelope.ID(id), Line: fmt.Appendf(nil, `{"task_id":"%s"}`, id)}
}

// pidIn reads what "pid" and "parent" answer.
func pidIn(t *testing.T, a worker.Answer) int {
	t.Helper()
	var said struct{ PID int }
	if err := json.Unmarshal(a.Line, &said); err != nil {
		t.Fatalf("answer %q: %v", a.Line, err)
	}
	return said.PID
}

func TestALineIsAnsweredByALine(t *testing.T) {
	p, n := open(t, spec(t.TempDir(), "echo"))
	for i := range 100 {
		q := question(fmt.Sprint("t", i))
		got, err := p.Ask(t.Context(), q)
		if err != nil || !bytes.Equal(got.Line, q.Line) {
			t.Fatalf("Ask(%s) = %q, %v; want its own line", q.ID, got.Line, err)
		}
		if got.PID == 0 || got.Started.IsZero() || got.Finished.Before(got.Started) {
			t.Errorf("answer = %+v; want to know who had it and when", got)
		}
	}
	if n.String() != "" {
		t.Errorf("noticed %s; want nothing", n)
	}
}

func TestNothingIsStartedBeforeAQuestion(t *testing.T) {
	dir := t.TempDir()
	p, _ := open(t, spec(dir, "echo"))
	p.Close(0)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v; want no trace of a process", left, err)
	}
	if _, err := p.Ask(t.Context(), question("late")); !errors.Is(err, worker.ErrClosed) {
		t.Errorf("Ask of a closed pool = %v; want ErrClosed", err)
	}
}

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	s := spec(t.TempDir(), "backwards", "12345678")
	s.InFlight = 8
	p, _ := open(t, s)
	askAll(t, p, 8*5)
}

func TestLongLinesPassBothWays(t *testing.T) {
	s := spec(t.TempDir(), "echo")
	s.InFlight = 4
	p, _ := open(t, s)
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			q := question(fmt.Sprint("t", i))
			q.Line = fmt.Appendf(nil, `{"task_id":"%s","x":"%s"}`, q.ID, strings.Repeat("x", 1<<20+i))
			got, err := p.Ask(t.Context(), q)
			if err != nil || !bytes.Equal(got.Line, q.Line) {
				t.Errorf("Ask = %d bytes, %v; want the %d asked", len(got.Line), err, len(q.Line))
			}
		})
	}
	asking.Wait()
}

// askAll asks n questions at once, each of which must have its own answer.
func askAll(t *testing.T, p *worker.Pool, n int) {
	t.Helper()
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() {
			q := question(fmt.Sprint("t", i))
			if got, err := p.Ask(t.Context(), q); err != nil || !bytes.Equal(got.Line, q.Line) {
				t.Errorf("Ask(%s) = %q, %v; want its own line", q.ID, got.Line, err)
			}
		})
	}
	asking.Wait()
}

// Row 35: what a worker prints besides its answers hurts nobody.
func TestLinesThatAnswerNothingAreCountedAndNoted(t *testing.T) {
	p, n := open(t, spec(t.TempDir(), "junk"))
	askAll(t, p, 3)
	p.Close(time.Second)
	for _, want := range []string{`a line that answers nothing: "worker v1.2 starting"`, "printed 19 lines that answer nothing"} {
		if !strings.Contains(n.String(), want) {
			t.Errorf("noticed %s; want %s in it", n, want)
		}
	}
}

func TestADyingWorkerFailsWhatItHasAndIsReplaced(t *testing.T) {
	p, n := open(t, spec(t.TempDir(), "third"))
	for i := range 9 {
		got, err := p.Ask(t.Context(), question(fmt.Sprint("t", i)))
		died, dead := errors.AsType[*worker.ExitError](err)
		switch {
		case i%3 == 2:
			if !dead || died.Code != 9 || died.Signal != "" || string(died.Words) != "I never could count\n" || got.PID == 0 {
				t.Errorf("Ask %d = %+v, %v; want status 9 and its last words", i, got, err)
			}
		case err != nil:
			t.Errorf("Ask %d = %v; want an answer", i, err)
		}
	}
	if !strings.Contains(n.String(), "exited with status 9") {
		t.Errorf("noticed %s; want the death", n)
	}
}

// Row 36: neither a flood of answer nor of anything else is held in memory.
func TestAnAnswerThatIsTooLongIsNone(t *testing.T) {
	p, _ := open(t, spec(t.TempDir(), "flood"))
	for _, id := range []string{"t1", "t2"} {
		if got, err := p.Ask(t.Context(), question(id)); !errors.Is(err, worker.ErrTooLong) {
			t.Errorf("Ask(%s) = %d bytes, %v; want ErrTooLong", id, len(got.Line), err)
		}
	}
}

func TestOnlyTheEndOfStderrIsKept(t *testing.T) {
	p, _ := open(t, spec(t.TempDir(), "noisy"))
	_, err := p.Ask(t.Context(), question("t1"))
	died, _ := errors.AsType[*worker.ExitError](err)
	if died == nil || died.Signal != "SIGKILL (9)" || len(died.Words) != 4<<10 || !died.Cut || !bytes.HasSuffix(died.Words, []byte("z\nlast\n")) {
		t.Errorf("Ask = %+v; want SIGKILL and the last 4 KiB of its words", died)
	}
}

func TestHalfAnAnswerIsNoneButItsNewlineMayLack(t *testing.T) {
	p, _ := open(t, spec(t.TempDir(), "half"))
	_, err := p.Ask(t.Context(), question("t1"))
	if _, dead := errors.AsType[*worker.ExitError](err); !dead {
		t.Errorf("Ask = %v; want the end of its worker", err)
	}
	p, _ = open(t, spec(t.TempDir(), "no newline"))
	if _, err := p.Ask(t.Context(), question("t1")); err != nil {
		t.Errorf("Ask = %v; want the answer", err)
	}
}

func TestOneThatClosesItsOutputIsEnded(t *testing.T) {
	s := spec(t.TempDir(), "mute")
	p, _ := open(t, s)
	_, err := p.Ask(t.Context(), question("t1"))
	if _, dead := errors.AsType[*worker.ExitError](err); !dead {
		t.Errorf("Ask = %v; want the end of its worker", err)
	}
}

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
		return // gone, and reaped by whoever reaps orphans here
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

func TestSeveralProcessesShareTheWork(t *testing.T) {
	s := spec(t.TempDir(), "pid")
	s.Count, s.InFlight = 3, 1
	p, _ := open(t, s)
	var asking sync.WaitGroup
	var pids sync.Map
	for i := range 60 {
		asking.Go(func() {
			got, err := p.Ask(t.Context(), question(fmt.Sprint("t", i)))
			if err != nil || got.PID != pidIn(t, got) {
				t.Errorf("Ask = %+v, %v; want an answer of the process it names", got, err)
			}
			pids.Store(got.PID, true)
		})
	}
	asking.Wait()
	n := 0
	pids.Range(func(any, any) bool { n++; return true })
	if n < 2 || n > 3 {
		t.Errorf("%d processes worked; want more than one, and no more than three", n)
	}
}

// BenchmarkAsk measures round trips of a small line through one process, with
// as many questions at once as its name says.
func BenchmarkAsk(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("in_flight=%d", n), func(b *testing.B) {
			s := spec(b.TempDir(), "echo")
			s.InFlight = n
			p, _ := open(b, s)
			if _, err := p.Ask(b.Context(), question("warm")); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetParallelism(n)
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := p.Ask(b.Context(), question(fmt.Sprint("t", next.Add(1)))); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
