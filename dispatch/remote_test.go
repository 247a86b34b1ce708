package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// far is an agent on another machine.
const far = "far"

// distant are runners that have room for so many runs.
type distant struct {
	mu      sync.Mutex
	room    int
	tokens  int
	settled []string
	grown   func() // wakes the queue
	unfit   error  // why no runner may have a run
	refused func(seq int64)
	held    map[int64]bool // tasks that wait until one may
}

// fit lets runners have runs, and returns the tasks that were held for that.
func (d *distant) fit() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unfit = nil
	return slices.Sorted(maps.Keys(d.held))
}

func (d *distant) functions() *store.Runners {
	locked := func(do func()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		do()
	}
	return &store.Runners{
		Free: func(string) (free bool) { locked(func() { free = d.room > 0 }); return free },
		Take: func(string) (grant any) {
			locked(func() {
				if d.room > 0 {
					d.room--
					grant = d
				}
			})
			return grant
		},
		Assign: func(_ any, seq int64, j task.Job) (at task.Assignment, err error) {
			locked(func() {
				if err = d.unfit; err != nil {
					return
				}
				d.tokens++
				at = task.Assignment{Runner: "gpu-1", Incarnation: "i", Token: fmt.Sprintf("1-%d-%d-%d-%d", seq, j.Revision, j.Attempt, d.tokens)}
			})
			if err != nil && d.refused != nil {
				d.refused(seq)
			}
			return at, err
		},
		Held: func(seq int64, held bool) (room bool) {
			locked(func() {
				if delete(d.held, seq); held && d.unfit != nil {
					d.held[seq] = true
				}
				room = held && d.unfit == nil
			})
			return room
		},
		Drop: func(any) {
			locked(func() { d.room++ })
			d.grown()
		},
		Settled: func(at task.Assignment) {
			locked(func() { d.settled = append(d.settled, at.Token); d.room++ })
			d.grown()
		},
	}
}

func (d *distant) ends() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.settled)
}

// farEngine is an engine whose agent far has room for so many runs on other machines.
func farEngine(t *testing.T, room int, do play) (*engine, *distant) {
	e, d := newEngine(t), &distant{room: room, held: map[int64]bool{}}
	e.runners, e.plays[far], e.dirs = d.functions(), do, true
	d.grown = func() { e.Queue.WakeOne() }
	return e, d
}

func TestARunGoesOnWhileItsRunnerCannotBeReached(t *testing.T) {
	steps := make(chan bool)
	e, d := farEngine(t, 1, func(_ context.Context, j task.Job) task.Outcome {
		for reachable := range steps {
			if err := j.Reach(reachable, time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
		}
		return decision(j, "from far")
	})
	e.start()
	e.send("t1", far)
	steps <- false
	e.until("the task has the reason", func() bool { return slices.Contains(e.row("t1").Reasons, task.Unreachable) })
	if row := e.row("t1"); row.State != task.Running {
		t.Errorf("the task is %s; want it running", row.State)
	}
	steps <- true
	e.until("the reason is gone", func() bool { return len(e.row("t1").Reasons) == 0 })
	close(steps)
	e.await("t1", task.Done)
	e.wantResult("t1", "from far")
	e.must(e.Idle(t.Context()))
	kinds, _ := e.history("t1")
	want := "task.accepted task.started run.assigned run.unreachable run.reachable task.finished"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("the events are %s; want %s", got, want)
	}
	runs, err := e.parts.Ledger.Runs(t.Context(), e.row("t1").Seq)
	if err != nil || len(runs) != 1 || runs[0].At.Runner != "gpu-1" || !slices.Equal(d.ends(), []string{runs[0].At.Token}) {
		t.Errorf("the runs are %+v, %v, and settled %v; want one that is settled", runs, err, d.ends())
	}
}

func TestATaskThatNoRunnerMayHaveWaitsUntilOneMay(t *testing.T) {
	e, d := farEngine(t, 1, func(_ context.Context, j task.Job) task.Outcome { return decision(j, "from far") })
	d.unfit = &schedule.UnfitError{Why: "the task is confidential, and runner gpu-1 takes at most internal"}
	e.start()
	e.send("t1", far)
	e.await("t1", task.Held)
	row := e.row("t1")
	if row.State != task.Held || !slices.Equal(row.Reasons, []task.Reason{task.NoRunner}) {
		t.Errorf("the task is %s %v; want it held until a runner may have it", row.State, row.Reasons)
	}
	e.must(e.Idle(t.Context())) // nothing is tried meanwhile
	e.RunnerHasRoom(d.fit())
	e.await("t1", task.Done)
	e.wantResult("t1", "from far")
	if len(d.held) > 0 {
		t.Errorf("the tasks %v are held; want none", d.held)
	}
}

func TestATaskIsPlacedWhoseRunnerGotRoomBeforeItWasHeld(t *testing.T) {
	e, d := farEngine(t, 1, func(_ context.Context, j task.Job) task.Outcome { return decision(j, "from far") })
	d.unfit = &schedule.UnfitError{Why: "runner gpu-1 takes at most internal"}
	d.refused = func(seq int64) {
		d.fit()
		e.RunnerHasRoom([]int64{seq}) // it is queued still
		e.RunnerHasRoom([]int64{seq})
	}
	e.start()
	e.send("t1", far)
	e.await("t1", task.Done)
	e.wantResult("t1", "from far")
}

func TestATaskThatIsCancelledWaitsForNoRunner(t *testing.T) {
	e, d := farEngine(t, 1, quick)
	d.unfit = &schedule.UnfitError{Why: "runner gpu-1 takes at most internal"}
	e.start()
	e.send("t1", far)
	e.await("t1", task.Held)
	e.must(e.Cancel(t.Context(), "t1", me))
	e.await("t1", task.Done)
	e.must(e.Idle(t.Context()))
	if held := d.fit(); len(held) > 0 {
		t.Errorf("the tasks %v are held; want none", held)
	}
}

func TestARunThatItsRunnerNeverBeganStartsAfresh(t *testing.T) {
	e, d := farEngine(t, 1, func(_ context.Context, j task.Job) task.Outcome {
		if j.Attempt == 1 {
			return task.Outcome{Void: errors.New("the runner has not begun it")}
		}
		return decision(j, "second")
	})
	e.start()
	e.send("t1", far)
	e.await("t1", task.Done)
	e.wantResult("t1", "second")
	e.must(e.Idle(t.Context()))
	if kinds, _ := e.history("t1"); !slices.Contains(kinds, "run.voided") || len(d.ends()) != 2 {
		t.Errorf("the events are %v, and settled %v; want that the first run is void", kinds, d.ends())
	}
}

// Each of them takes a run and two events.
func TestRunsThatTheirRunnerNeverBeginsBecomeRare(t *testing.T) {
	var runs atomic.Int32
	e, _ := farEngine(t, 1, func(_ context.Context, j task.Job) task.Outcome {
		runs.Add(1)
		return task.Outcome{Void: errors.New("the runner has not begun it")}
	})
	e.start()
	e.send("t1", far)
	e.until("the run has been void twice", func() bool { return runs.Load() == 3 })
	e.until("the task is queued", func() bool { return e.row("t1").State == task.Queued })
	time.Sleep(2 * time.Second)
	if n := runs.Load(); n > 3 {
		t.Errorf("%d runs were tried; want a pause of at least three seconds before the fourth one", n)
	}
	e.must(e.Cancel(t.Context(), "t1", me))
	e.await("t1", task.Done)
	e.must(e.Idle(t.Context()))
}

func TestAJobThatCannotBeSentIsReportedAndLeavesNothing(t *testing.T) {
	var runs atomic.Int32
	var dir atomic.Pointer[string]
	e, _ := farEngine(t, 1, func(_ context.Context, j task.Job) task.Outcome {
		if runs.Add(1) > 1 {
			return decision(j, "second")
		}
		dir.Store(&j.Dir)
		if err := os.MkdirAll(j.Dir, 0o700); err != nil {
			t.Error(err)
		}
		return task.Outcome{Void: &schedule.UnsentError{Err: errors.New("send the commit: insufficient storage")}}
	})
	e.start()
	e.send("t1", far)
	e.until("the fault is reported", func() bool { return len(e.Faults()) == 1 })
	if f := e.Faults()[0]; f.What != store.Sending || !strings.Contains(f.Reason, "insufficient storage") {
		t.Errorf("the fault is %+v; want that the job can't be sent, with the reason", f)
	}
	e.until("the task is queued again", func() bool { return e.row("t1").State == task.Queued })
	e.until("its directory is removed", func() bool { _, err := os.Lstat(*dir.Load()); return errors.Is(err, fs.ErrNotExist) })
	e.await("t1", task.Done)
	e.wantResult("t1", "second")
	e.must(e.Idle(t.Context()))
	runsOf, err := e.parts.Ledger.Runs(t.Context(), e.row("t1").Seq)
	if err != nil || len(runsOf) != 1 || len(e.Faults()) > 0 {
		t.Errorf("the runs are %+v, %v, and the faults %+v; want the second run only", runsOf, err, e.Faults())
	}
}

func TestRunsOnOtherMachinesTakeNoSlotHere(t *testing.T) {
	const n = 50
	var all sync.WaitGroup
	all.Add(n)
	e, _ := farEngine(t, n, func(_ context.Context, j task.Job) task.Outcome {
		all.Done()
		all.Wait() // all of them run at once
		return decision(j, "done")
	})
	e.opts.Workers = 1
	e.start()
	e.send("local", "slow")
	e.await("local", task.Running)
	for i := range n {
		e.send(fmt.Sprint("t", i), far)
	}
	for i := range n {
		e.await(fmt.Sprint("t", i), task.Done)
	}
}

func TestARunOnAnotherMachineGoesOnWhenTheDaemonStartsAgain(t *testing.T) {
	sent := make(chan struct{})
	e, d := farEngine(t, 1, func(ctx context.Context, _ task.Job) task.Outcome {
		close(sent)
		<-ctx.Done()
		return task.Outcome{Detached: true}
	})
	e.opts.Detach = true
	e.start()
	e.send("t1", far)
	<-sent
	e.recovers = func(context.Context) task.Outcome {
		return decision(task.Job{Task: envelope.Task{ID: "t1", Agent: far}, Revision: 1}, "still there")
	}
	e.restart()
	e.await("t1", task.Done)
	e.wantResult("t1", "still there")
	e.must(e.Idle(t.Context()))
	runs, err := e.parts.Ledger.Runs(t.Context(), e.row("t1").Seq)
	if err != nil || len(runs) != 1 || !slices.Equal(d.ends(), []string{runs[0].At.Token}) {
		t.Errorf("the runs are %+v, %v, and settled %v; want the first one only", runs, err, d.ends())
	}
}

func TestALateAnswerOfARunnerIsRecordedWithItsTask(t *testing.T) {
	e, _ := farEngine(t, 1, quick)
	e.start()
	e.send("t1", far)
	row := e.await("t1", task.Done)
	late := task.LateAnswer{
		Run: task.RunName{Task: row.Seq, Attempt: 1}, At: task.Assignment{Runner: "gpu-1", Token: "1-1-1-1-x"},
		Why: "it came too late", File: "runs/x/late/answer.json", Status: envelope.OK, Summary: "trained",
		Left: []string{"file weights is too large"},
	}
	wantKnown := func(attempt int, want bool) {
		t.Helper()
		if known, err := e.HasLateAnswer(t.Context(), task.RunName{Task: row.Seq, Attempt: attempt}); err != nil || known != want {
			t.Errorf("a late answer of attempt %d is recorded: %v, %v; want %v", attempt, known, err, want)
		}
	}
	wantKnown(1, false)
	e.must(e.RecordFenced(t.Context(), late))
	wantKnown(1, true)
	wantKnown(2, false)
	e.must(e.RecordFenced(t.Context(), task.LateAnswer{Run: task.RunName{Task: 999, Attempt: 1}, Why: "no such task"}))
	kinds, data := e.history("t1")
	if !slices.Contains(kinds, "run.fenced") || !strings.Contains(data, "runs/x/late/answer.json") || !strings.Contains(data, "trained") ||
		!strings.Contains(data, "file weights is too large") {
		t.Errorf("the events are %v with %s; want the late answer", kinds, data)
	}
}
