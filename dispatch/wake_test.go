package dispatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/slowtest"
)

// A wake is how a task is held for a reason, and what ends that.
type wake struct {
	starts int32                       // of the task, by what ends the hold
	slow   bool                        // it takes seconds
	hold   func(t *testing.T) *sleeper // returns with the task held for the reason, perhaps among others
	end    func(s *sleeper)            // may be called again, and after a restart
}

// A sleeper is an engine in which one task is held.
type sleeper struct {
	*engine
	id     string
	finish func() // lets the other runs go on
	line   func(text string)
}

// wakes has every reason of task.Reasons.
var wakes = map[task.Reason]wake{
	task.Approval: {starts: 1, hold: heldForApproval, end: func(s *sleeper) {
		_ = s.Approve(context.Background(), envelope.ID(s.id), ada, "") // a second one comes too late
	}},
	task.Reply:         {starts: 1, hold: heldForReply, end: func(s *sleeper) { s.line(message("user", s.id, "pm", "the north")) }},
	task.AuthRequired:  {starts: 1, hold: heldForLogin, end: releases},
	task.AnswerUnread:  {hold: heldUnread, end: func(s *sleeper) { s.finish(); releases(s) }},
	task.ResultInvalid: {starts: 1, slow: true, hold: heldForFile, end: func(s *sleeper) { s.finish() }},
	task.RunDirectory:  {starts: 1, hold: heldForObstacle, end: func(s *sleeper) { s.finish(); releases(s) }},
	task.Recovered:     {starts: 1, hold: heldAsRecovered, end: releases},
	task.Operator:      {starts: 1, hold: heldByOperator, end: releases},
	task.NoRunner:      {starts: 1, hold: heldForRunner, end: func(s *sleeper) { s.finish() }},
	task.ProviderLimit: {starts: 1, hold: heldForLimit, end: releases},
	task.Children:      {starts: 1, hold: heldForChild, end: func(s *sleeper) { s.finish() }},
	task.Routing:       {starts: 1, hold: heldForAgent, end: func(s *sleeper) { s.finish() }},
	task.Paused: {starts: 1, hold: heldByPause, end: func(s *sleeper) {
		s.must(s.Resume(context.Background(), "quick", me))
	}},
	task.ChangeWindow: {starts: 1, hold: heldForWindow, end: func(s *sleeper) { s.finish(); s.ReevaluateAll() }},
	task.Capacity:     {starts: 1, hold: heldForBudget, end: func(s *sleeper) { s.finish() }},
	task.After: {starts: 1, hold: heldForOther, end: func(s *sleeper) {
		s.send("first", "quick")
	}},
	task.SameCommand: {hold: heldForLeader, end: func(s *sleeper) { s.finish() }},
}

// For every reason of a hold: what ends it starts the task, also if the daemon was started again
// meanwhile; and if that comes twice, or just before the daemon is started again, the task starts
// once. So it does if the daemon is killed when what ends the hold, or a step after that, is durable and
// nothing else has followed.
func TestWhatEndsAHoldStartsItsTaskOnce(t *testing.T) {
	for _, reason := range task.Reasons() {
		if reason == task.Unreachable {
			continue // the task is running: TestARunGoesOnWhileItsRunnerCannotBeReached
		}
		w, known := wakes[reason]
		if !known {
			t.Errorf("nothing says how a hold for %s ends", reason)
			continue
		}
		for name, end := range map[string]func(*sleeper){
			"woken":                   w.end,
			"woken twice":             func(s *sleeper) { w.end(s); w.end(s) },
			"woken after a restart":   func(s *sleeper) { s.restart(); w.end(s) },
			"restarted after waking":  func(s *sleeper) { w.end(s); s.restart() },
			"woken on both its sides": func(s *sleeper) { w.end(s); s.restart(); w.end(s) },
			"woken by two at once":    func(s *sleeper) { together(func() { w.end(s) }, func() { w.end(s) }) },
			"killed after 1 step":     func(s *sleeper) { dies(s, w, 1) },
			"killed after 2 steps":    func(s *sleeper) { dies(s, w, 2) },
			"killed after 3 steps":    func(s *sleeper) { dies(s, w, 3) },
		} {
			t.Run(string(reason)+" "+name, func(t *testing.T) {
				if w.slow {
					slowtest.SkipShort(t, "it waits for seconds")
				}
				s := w.hold(t)
				if row := s.row(s.id); row.State != task.Held || !slices.Contains(row.Reasons, reason) {
					t.Fatalf("%s is %s %v; want it held for %s", s.id, row.State, row.Reasons, reason)
				}
				before := s.runsOf(envelope.ID(s.id)).Load()
				end(s)
				row := s.await(s.id, task.Done)
				s.must(s.Idle(t.Context()))
				if got := s.runsOf(envelope.ID(s.id)).Load() - before; row.Status != envelope.OK || got != w.starts {
					t.Errorf("%s ended %s after %d runs; want ok after %d", s.id, row.Status, got, w.starts)
				}
			})
		}
	}
}

// together calls functions at the same time.
func together(calls ...func()) {
	var group sync.WaitGroup
	for _, call := range calls {
		group.Go(call)
	}
	group.Wait()
}

// dies ends the hold in a daemon that is killed after so many transactions, and starts the next one.
func dies(s *sleeper, w wake, transactions int) {
	s.killed.after(transactions)
	w.end(s)
	s.until("the daemon is killed or the task done", func() bool {
		row := s.row(s.id)
		return s.killed.came() || row.State == task.Done && row.Put && row.Delivered
	})
	s.restart()
}

// releases releases the task, unless that was done before.
func releases(s *sleeper) {
	_ = s.Release(context.Background(), envelope.ID(s.id), me)
}

// sleeps starts an engine, has a task t1 of the agent quick taken in, and waits until it is held.
func sleeps(e *engine, members ...string) *sleeper {
	e.start()
	s := &sleeper{engine: e, id: "t1", finish: func() {}}
	s.send("t1", "quick", members...)
	s.await("t1", task.Held)
	return s
}

func heldForApproval(t *testing.T) *sleeper {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	return sleeps(e)
}

func heldForReply(t *testing.T) *sleeper {
	st := newStage(t)
	st.cast("pm", says(task.Reply, question("pm", "t1", "user", "which region?")), answers("done so"))
	st.start()
	st.order("t1", "pm")
	return &sleeper{engine: st.engine, id: "t1", line: st.line}
}

func heldForLogin(t *testing.T) *sleeper {
	e := newEngine(t)
	var runs atomic.Int32
	e.plays["quick"] = func(ctx context.Context, j task.Job) task.Outcome {
		if runs.Add(1) == 1 {
			return shutOut(j)
		}
		return quick(ctx, j)
	}
	return sleeps(e)
}

func heldUnread(t *testing.T) *sleeper {
	e, _, repair := unreadEngine(t)
	e.plays["quick"] = e.plays["a"]
	s := sleeps(e)
	s.finish = repair
	return s
}

func heldForFile(t *testing.T) *sleeper {
	e := startEngine(t)
	e.send("t1", "quick")
	e.await("t1", task.Done)
	path := filepath.Join(e.parts.Box.ResultsDir(), "t1.json")
	e.must(errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	e.send("t1", "quick", `"metadata":{"n":2}`)
	e.await("t1", task.Held)
	return &sleeper{engine: e, id: "t1", finish: func() { _ = os.Remove(path) }}
}

func heldForObstacle(t *testing.T) *sleeper {
	e := newEngine(t)
	e.dirs = true
	path := filepath.Join(e.dir, "state", "runs", "t1")
	e.must(os.MkdirAll(filepath.Dir(path), 0o700))
	e.must(os.Chmod(filepath.Join(e.dir, "state"), 0o700))
	e.must(os.WriteFile(path, nil, 0o600))
	s := sleeps(e)
	s.finish = sync.OnceFunc(func() { _ = os.Remove(path) })
	return s
}

func heldAsRecovered(t *testing.T) *sleeper {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.end()
	e.loseLedger()
	e.start()
	e.Look(t.Context())
	e.await("t1", task.Held)
	return &sleeper{engine: e, id: "t1"}
}

func heldByOperator(t *testing.T) *sleeper {
	s := heldByPause(t)
	s.must(s.Hold(t.Context(), "t1", me))
	s.must(s.Resume(t.Context(), "quick", me))
	s.until("only the operator holds it", func() bool { return slices.Equal(s.row("t1").Reasons, []task.Reason{task.Operator}) })
	return s
}

// heldForRunner has a task wait for a runner that may have it.
func heldForRunner(t *testing.T) *sleeper {
	e, d := farEngine(t, 1, quick)
	d.unfit = &schedule.UnfitError{Why: "runner gpu-1 takes at most internal"}
	e.start()
	s := &sleeper{engine: e, id: "t1"}
	s.finish = func() { e.RunnerHasRoom(d.fit()) }
	e.send("t1", far)
	e.await("t1", task.Held)
	return s
}

func heldForLimit(t *testing.T) *sleeper {
	e := newEngine(t)
	limitedOnce(e, time.Hour)
	e.plays["quick"] = e.plays["cli"]
	return sleeps(e)
}

func heldForChild(t *testing.T) *sleeper {
	e := newEngine(t)
	e.supports, e.most = map[string][]string{"other": {"work"}}, 4
	e.dialects = map[string]envelope.Dialect{"chief": envelope.CLowl}
	goOn, finish := gate()
	e.plays["chief"], e.plays["other"] = hands(`"other"`, "assist"), goOn
	e.judge = choosy(e)
	e.start()
	e.say(req("m1", "chief"))
	e.await("m1", task.Held)
	return &sleeper{engine: e, id: "m1", finish: finish}
}

// heldForAgent has a task wait for one of two agents, which are busy with other tasks.
func heldForAgent(t *testing.T) *sleeper {
	e, _, _ := newRoutingEngine(t)
	goOn, finish := gate()
	e.plays["a"], e.plays["b"] = goOn, goOn
	e.start()
	e.send("one", "a")
	e.send("two", "b")
	e.await("one", task.Running)
	e.await("two", task.Running)
	e.send("t1", "*")
	e.await("t1", task.Held)
	return &sleeper{engine: e, id: "t1", finish: finish}
}

func heldByPause(t *testing.T) *sleeper {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.await("t1", task.Held)
	return &sleeper{engine: e, id: "t1", finish: func() {}}
}

func heldForWindow(t *testing.T) *sleeper {
	e := newEngine(t)
	var open atomic.Bool
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		v := task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline}}
		if !open.Load() {
			v.Hold, v.Until = []task.Reason{task.ChangeWindow}, now.Add(time.Hour)
		}
		return v
	}
	s := sleeps(e)
	s.finish = func() { open.Store(true) }
	return s
}

func heldForBudget(t *testing.T) *sleeper {
	e := newEngine(t)
	e.judge = sharing(100)
	goOn, finish := gate()
	e.plays["other"] = func(ctx context.Context, j task.Job) task.Outcome {
		goOn(ctx, j)
		return spent(j, 1)
	}
	e.start()
	e.send("first", "other", budget(80))
	e.await("first", task.Running)
	e.send("t1", "quick", budget(80))
	e.await("t1", task.Held)
	return &sleeper{engine: e, id: "t1", finish: finish}
}

func heldForOther(t *testing.T) *sleeper { return sleeps(newEngine(t), after("first")) }

func heldForLeader(t *testing.T) *sleeper {
	e := newEngine(t)
	goOn, finish := gate()
	e.plays["other"] = func(ctx context.Context, j task.Job) task.Outcome {
		o := goOn(ctx, j)
		o.Detached = ctx.Err() != nil // the run goes on without the daemon
		return o
	}
	e.recovers = func(ctx context.Context) task.Outcome {
		return goOn(ctx, task.Job{Task: envelope.Task{ID: "t0", Agent: "other"}, Revision: 1})
	}
	e.start()
	line := `{"v":"clutch/0.1","id":"m1","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1","task_id":"t0",` +
		`"from":{"agent_id":"agent:ui"},"to":[{"agent_id":"agent:other"}],"type":"task.request","payload":{"title":"Find it"},"idempotency_key":"k"}`
	e.say(line)
	e.await("t0", task.Running)
	e.say(strings.NewReplacer(`"m1"`, `"m2"`, `"t0"`, `"t1"`).Replace(line))
	e.await("t1", task.Held)
	return &sleeper{engine: e, id: "t1", finish: finish}
}

// gate plays an agent that answers once open was called.
func gate() (p play, open func()) {
	opened := make(chan struct{})
	return func(ctx context.Context, j task.Job) task.Outcome {
		select {
		case <-opened:
			o := quick(ctx, j)
			o.Exit.Started = time.Now()
			return o
		case <-ctx.Done():
			return slow(ctx, j)
		}
	}, sync.OnceFunc(func() { close(opened) })
}
