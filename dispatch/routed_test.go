package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// newRoutingEngine makes an engine that chooses between the agents "a" and "b", which answer when
// a test says so. Each may have one run.
func newRoutingEngine(t *testing.T) (e *engine, refuse func(agent string), finish chan struct{}) {
	e = newEngine(t)
	finish = make(chan struct{})
	answer := func(ctx context.Context, j task.Job) task.Outcome {
		select {
		case <-finish:
			return quick(ctx, j)
		case <-ctx.Done():
			return slow(ctx, j)
		}
	}
	e.plays["a"], e.plays["b"], e.plays["other"] = answer, answer, answer
	e.limit = func(string) int { return 1 }
	e.routes = func(envelope.Task) (store.Candidates, bool) {
		return store.Candidates{All: []route.Candidate{{ID: "a", Slots: 1}, {ID: "b", Slots: 1}}, Timeout: time.Hour}, true
	}
	var mu sync.Mutex // guards refused
	var refused []string
	e.judge = func(asked envelope.Task, _ time.Time) task.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(refused, asked.Agent) {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Field: "target_agent", Message: "is disabled"}}}
		}
		return task.Verdict{Admit: true, Terms: task.Terms{Deadline: asked.Deadline}}
	}
	return e, func(agent string) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, agent)
	}, finish
}

// chosen waits until a task has got an agent, and returns its Seq.
func (e *engine) chosen(id, agent string) int64 {
	e.t.Helper()
	e.until(id+" is given to "+agent, func() bool { return e.row(id).Agent == agent && e.row(id).State == task.Queued })
	return e.row(id).Seq
}

// A task that was taken back from its agent leaves an item in the queue of that agent. The task
// starts in a slot of its new agent only.
func TestATaskThatGotAnotherAgentStartsInASlotOfThatAgent(t *testing.T) {
	e, refuse, finish := newRoutingEngine(t)
	e.opts.Workers = 1
	e.start()
	e.send("first", "other")
	e.await("first", task.Running)
	e.send("t1", "*")
	seq := e.chosen("t1", "a")
	refuse("a")
	e.Reevaluate(t.Context(), seq)
	e.chosen("t1", "b")
	for agent, want := range map[string]bool{"a": false, "b": true} {
		if _, job, err := e.Admit(t.Context(), schedule.Item{Seq: seq, Agent: agent}); err != nil || (job.RunID != "") != want {
			t.Errorf("Admit of the item of %s = %q, %v; want a run: %v", agent, job.RunID, err, want)
		}
	}
	close(finish)
	if row := e.await("t1", task.Done); row.Agent != "b" || row.Attempt != 1 {
		t.Errorf("t1 was run %d times by %q; want once by b", row.Attempt, row.Agent)
	}
}

func TestAFreeAgentIsChosenForTheTaskWithTheHighestPriority(t *testing.T) {
	e, _, finish := newRoutingEngine(t)
	e.opts.MaxPriority = 9
	e.start()
	for _, id := range []string{"busy1", "busy2"} {
		e.send(id, "*")
		e.await(id, task.Running)
	}
	for _, sent := range []struct {
		id       string
		priority int
	}{{"low", -5}, {"high", 9}, {"plain", 0}} { // with "plain" the engine has seen to "high"
		e.send(sent.id, "*", fmt.Sprintf(`"metadata":{"mbx.priority":%d}`, sent.priority))
		e.await(sent.id, task.Held)
	}
	finish <- struct{}{} // one agent is free now
	e.await("high", task.Running)
	for _, id := range []string{"low", "plain"} {
		if row := e.row(id); row.State != task.Held {
			t.Errorf("%s is %s; want it held, while the agents work", id, row.State)
		}
	}
	close(finish)
}

// The budget of the day becomes free between the decisions about two tasks that wait for it.
func TestABudgetThatBecomesFreeGoesToTheTaskThatWaitsLongest(t *testing.T) {
	e, _, finish := newRoutingEngine(t)
	e.limit = func(string) int { return 3 }
	e.judge = func(asked envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Admit: true, Terms: task.Terms{
			Budget: asked.Budget, Accounts: []task.Account{{Owner: "agent:a", Limit: tokens(10)}},
		}}
	}
	var third atomic.Bool // its decision is the next one
	e.routes = func(asked envelope.Task) (store.Candidates, bool) {
		if asked.ID == "third" && third.CompareAndSwap(true, false) {
			finish <- struct{}{}
			e.await("first", task.Done)
		}
		return store.Candidates{All: []route.Candidate{{ID: "a", Slots: 3}}, Timeout: time.Hour}, true
	}
	e.start()
	e.send("first", "a", budget(10))
	e.await("first", task.Running)
	for _, id := range []string{"second", "third"} {
		e.send(id, "*", budget(10))
		e.await(id, task.Held)
	}
	third.Store(true)
	e.send("fourth", "*", budget(10)) // has all of them looked at
	e.until("a task got the budget", func() bool {
		return slices.ContainsFunc([]string{"second", "third", "fourth"}, func(id string) bool { return e.row(id).State == task.Running })
	})
	if row := e.row("second"); row.State != task.Running {
		t.Errorf("second is %s; want it running: it has waited longest", row.State)
	}
	close(finish)
}

func TestAfterAStartOrAReloadATaskWithoutAnAgentIsDecidedByTheRulesOfThen(t *testing.T) {
	for name, change := range map[string]func(e *engine, rules func()){
		"a start":  func(e *engine, rules func()) { e.end(); rules(); e.start() },
		"a reload": func(e *engine, rules func()) { rules(); e.ReevaluateAll() },
	} {
		t.Run(name, func(t *testing.T) {
			e, refuse, finish := newRoutingEngine(t)
			defer close(finish)
			e.start()
			e.must(e.Pause(t.Context(), store.Everyone, me))
			e.send("t1", "*")
			e.await("t1", task.Held)
			e.must(e.Idle(t.Context()))
			change(e, func() { refuse("a"); refuse("b") })
			e.await("t1", task.Done) // although no agent is free
			e.wantResult("t1", `"rejected"`)
		})
	}
}

func TestATaskWithoutAnAgentEndsAtItsDeadlineUnderAnOperatorsHold(t *testing.T) {
	e, _, finish := newRoutingEngine(t)
	defer close(finish)
	e.start()
	e.must(errors.Join(e.Pause(t.Context(), "a", me), e.Pause(t.Context(), "b", me)))
	for patience := time.Second; ; patience *= 4 {
		id := "within-" + patience.String()
		e.send(id, "*", `"deadline":"`+time.Now().Add(patience).Format(time.RFC3339Nano)+`"`)
		err := e.Hold(t.Context(), envelope.ID(id), me)
		if err != nil && e.row(id).State == task.Done && patience < time.Minute {
			continue // it was over before the hold
		}
		e.must(err)
		if row := e.await(id, task.Done); row.Kind != envelope.DeadlineExceeded {
			t.Errorf("%s ended as %s; want deadline_exceeded", id, row.Kind)
		}
		return
	}
}
