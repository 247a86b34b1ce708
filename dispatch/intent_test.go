package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

// wantOneRunDir fails the test when a task has not exactly one run directory, of
// its first attempt.
func (e *engine) wantOneRunDir(id string) {
	e.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(e.parts.State.RunDir(envelope.ID(id), 1, 1)))
	e.must(err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, []string{"1.1"}) {
		e.t.Errorf("run directories of %s = %q; want 1.1 alone", id, names)
	}
}

// freeWhenJudged makes room on the disk when a task was judged a number of times,
// which it is each time that somebody tries to begin its run, and closes the channel.
func (e *engine) freeWhenJudged(id string, times int) <-chan struct{} {
	judge, free := e.judge, make(chan struct{})
	var mu sync.Mutex // guards times
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if string(t.ID) == id {
			if times--; times == 0 {
				e.limitFiles(unix.RLIM_INFINITY)
				close(free)
			}
		}
		return judge(t, now)
	}
	return free
}

// The ledger is full while a slot becomes free for a queued task.
func TestAnIntentThatFailsLeavesOneRunDirectory(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	if !alone(t) {
		return
	}
	e := newEngine(t)
	e.dirs, e.opts.Workers = true, 1
	began, end := make(chan struct{}), make(chan struct{})
	e.plays["first"] = func(_ context.Context, j task.Job) task.Outcome {
		close(began)
		<-end
		return decision(j, "done")
	}
	e.plays["next"] = func(_ context.Context, j task.Job) task.Outcome {
		if j.Attempt != 1 {
			t.Errorf("attempt %d is the first that began", j.Attempt)
		}
		return decision(j, "done")
	}
	free := e.freeWhenJudged("t2", 4) // when it was taken in, and three times before its run
	e.start()
	e.send("t1", "first")
	<-began
	e.send("t2", "next")
	e.limitFiles(0)
	close(end)
	<-free
	e.await("t2", "done")
	e.wantOneRunDir("t2")
}

// The ledger is full while a line comes to a free slot.
func TestAnIntentThatFailsWithItsLineLeavesOneRunDirectory(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	if !alone(t) {
		return
	}
	e := newEngine(t)
	e.dirs = true
	e.plays["next"] = func(_ context.Context, j task.Job) task.Outcome {
		if j.Attempt != 1 {
			t.Errorf("attempt %d is the first that began", j.Attempt)
		}
		return decision(j, "done")
	}
	free := e.freeWhenJudged("t1", 3)
	e.start()
	e.append("tester", "t1", "next")
	e.limitFiles(0)
	e.Look(t.Context())
	<-free
	e.await("t1", "done")
	e.wantOneRunDir("t1")
}

func TestAnIntendedRunThatHasNotBegunAsWeStopBeginsAfterTheStart(t *testing.T) {
	e := newEngine(t)
	stopped := make(chan struct{})
	var judged atomic.Int32
	e.judge = func(envelope.Task, time.Time) task.Verdict {
		if judged.Add(1) == 2 { // by a worker, which has the task and its slot
			e.stop()
			close(stopped)
		}
		return task.Verdict{Admit: true}
	}
	e.start()
	e.send("t1", "quick")
	<-stopped
	e.restart()
	row := e.await("t1", task.Done)
	runs, err := e.parts.Ledger.Runs(t.Context(), row.Seq)
	if ran := e.runsOf("t1").Load(); err != nil || len(runs) != 1 || ran != 1 || row.Status != envelope.OK {
		t.Errorf("t1 has %d runs, %v, began %d times and is %q; want 1 run, since an intent that came to nothing is none", len(runs), err, ran, row.Status)
	}
}
