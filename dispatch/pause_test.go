package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func TestAPauseOutlastsARestartAndResumeLetsEverythingGo(t *testing.T) {
	e := startEngine(t)
	e.must(e.Pause(t.Context(), store.Everyone, me))
	e.must(e.Pause(t.Context(), store.Everyone, me)) // once more is no news
	e.send("t1", "quick")
	e.restart()
	e.send("t2", "quick")
	e.wantHeld("t1", task.Paused)
	e.wantHeld("t2", task.Paused)
	e.must(e.Resume(t.Context(), store.Everyone, me))
	e.await("t1", task.Done)
	e.await("t2", task.Done)
	events, err := e.parts.Ledger.Events(t.Context(), "", 0, 1000)
	e.must(err)
	notified := map[task.Kind]int{}
	for _, event := range events {
		notified[event.Kind]++
	}
	if notified["agent.paused"] != 1 || notified["agent.resumed"] != 1 {
		t.Errorf("events = %v; want agent.paused and agent.resumed once", notified)
	}
}

func TestAPauseOfOneAgentLeavesTheOthersAlone(t *testing.T) {
	e := startEngine(t)
	e.plays["other"] = quick
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.send("t2", "other")
	e.await("t2", task.Done)
	e.must(e.Resume(t.Context(), store.Everyone, me)) // not what was paused
	e.wantHeld("t1", task.Paused)
}

func TestWhatWaitsInTheQueueDoesNotStartDuringAPause(t *testing.T) {
	e := newEngine(t)
	e.opts.Workers = 1
	goOn := make(chan struct{})
	e.plays["slow"] = func(ctx context.Context, j task.Job) task.Outcome { <-goOn; return decision(j, "done") }
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Running)
	e.send("t2", "slow")
	e.must(e.Pause(t.Context(), "slow", me))
	close(goOn)
	e.await("t1", task.Done)
	e.await("t2", task.Held)
	e.must(e.Resume(t.Context(), "slow", me))
	e.await("t2", task.Done)
}

func TestALongQueueIsHeldAndLetGoWhole(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	e := newEngine(t)
	e.opts.Workers = 1
	goOn := make(chan struct{})
	e.plays["slow"] = func(ctx context.Context, j task.Job) task.Outcome { <-goOn; return decision(j, "done") }
	e.plays["other"] = quick
	e.start()
	e.send("first", "slow")
	e.await("first", task.Running)
	var behind []string
	for n := range 150 {
		behind = append(behind, fmt.Sprintf("t%03d", n))
		e.send(behind[n], "slow")
	}
	e.send("other", "other")
	e.await(behind[149], task.Queued)
	e.must(e.Pause(t.Context(), "slow", me))
	close(goOn)
	for _, id := range behind {
		e.await(id, task.Held)
	}
	e.await("other", task.Done)
	e.must(e.Resume(t.Context(), "slow", me))
	for _, id := range behind {
		e.await(id, task.Done)
	}
}

func TestDrainReturnsWhenNothingRunsAndItsResultsAreDurable(t *testing.T) {
	e := newEngine(t)
	goOn := make(chan struct{})
	e.plays["slow"] = func(ctx context.Context, j task.Job) task.Outcome { <-goOn; return decision(j, "done") }
	e.start()
	e.send("t1", "slow")
	e.await("t1", task.Running)
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := e.Drain(short, store.Everyone, me); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Drain(while it runs) = %v; want the end of its context", err)
	}
	close(goOn)
	e.must(e.Drain(t.Context(), store.Everyone, me))
	if row := e.row("t1"); row.State != task.Done {
		t.Errorf("t1 is %s after Drain; want done", row.State)
	}
	e.send("t2", "slow")
	e.wantHeld("t2", task.Paused)
}
