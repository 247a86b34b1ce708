package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/running/worker"
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

func TestALineThatIsNoAnswerYetIsOnlyRead(t *testing.T) {
	p, n := open(t, spec(t.TempDir(), "stepwise"))
	for i := range 10 {
		q, steps := question(fmt.Sprint("t", i)), 0
		q.Interim = func(line []byte) bool {
			interim := bytes.Contains(line, []byte(`"step"`))
			if interim {
				steps++
			}
			return interim
		}
		if got, err := p.Ask(t.Context(), q); err != nil || !bytes.Equal(got.Line, q.Line) || steps != 2 {
			t.Fatalf("Ask(%s) = %q, %v after %d steps; want its own line after 2", q.ID, got.Line, err, steps)
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
	for _, want := range []string{"a line of 20 bytes that answers nothing", "printed 19 lines that answer nothing"} {
		if !strings.Contains(n.String(), want) {
			t.Errorf("noticed %s; want %s in it", n, want)
		}
	}
}

// Whether such an answer counts is decided later; until then its task waits.
func TestAnAnswerIsMatchedByIDWhateverStandsBeforeThat(t *testing.T) {
	p, _ := open(t, spec(t.TempDir(), "echo"))
	for _, before := range []string{`"output":"\ud800"`, `"a":1,"a":2`, "\"output\":\"\xff\""} {
		q := question("t1")
		q.Timeout = time.Minute // it hangs when the answer is not matched
		q.Line = []byte(`{` + before + `,"task_id":"t1"}`)
		if got, err := p.Ask(t.Context(), q); err != nil || !bytes.Equal(got.Line, q.Line) {
			t.Errorf("Ask = %q, %v; want the answer %s", got.Line, err, q.Line)
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
			if !dead || died.Code != 9 || died.Signal != "" || string(died.Stderr) != "I never could count\n" || got.PID == 0 {
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
	if died == nil || died.Signal != "SIGKILL (9)" || len(died.Stderr) != 4<<10 || !died.Cut || !bytes.HasSuffix(died.Stderr, []byte("z\nlast\n")) {
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
