package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func TestATaskThatWaitsForABudgetIsWokenAlsoWhenTheRunsOfAnotherCannotBeRead(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.start()
	e.send("first", "chief", `"budget_limit":{"tokens":900}`)
	e.awaitWork("first")
	e.send("second", "clerk", `"budget_limit":{"tokens":900}`)
	e.await("second", task.Held)
	unreadable, cancel := context.WithCancel(t.Context())
	cancel()
	e.Settled(unreadable, e.row("first"))
	e.until("the waiting task is looked at again", func() bool {
		kinds, _ := e.history("second")
		held := 0
		for _, kind := range kinds {
			if kind == "task.held" {
				held++
			}
		}
		return held > 1
	})
	for _, agent := range words {
		close(agent)
	}
	e.await("second", task.Done)
}

func TestTheLedgerAndTheMemoryAgreeOnAPauseAfterManyChangesAtOnce(t *testing.T) {
	e := startEngine(t)
	for range slowtest.Times(100) {
		var changing sync.WaitGroup
		for range 16 {
			changing.Go(func() { e.must(e.Pause(t.Context(), "quick", me)) })
			changing.Go(func() { e.must(e.Resume(t.Context(), "quick", me)) })
		}
		changing.Wait()
		durable, err := e.parts.Ledger.Paused(t.Context())
		if e.must(err); (len(durable) > 0) != e.PausedNow("quick") {
			t.Fatalf("the ledger has the pauses %v, the memory %v; want the same", durable, e.PausedNow("quick"))
		}
	}
}

func TestACallbackThatHangsDelaysNoDeadline(t *testing.T) {
	e := newEngine(t)
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		v := task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline}}
		if !t.Deadline.IsZero() && !now.Before(t.Deadline) {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is past"}}}
		}
		return v
	}
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("cancelled", "quick", `"callback":{"queue":"answers"}`)
	goOn := sync.OnceFunc(e.HangCallbacks())
	var cancelling sync.WaitGroup
	defer cancelling.Wait()
	defer goOn()
	cancelling.Go(func() { e.must(e.Cancel(context.Background(), "cancelled", me)) })
	e.until("the task is over and its callback hangs", func() bool { return e.row("cancelled").State == task.Done })
	e.RingNow(e.row("cancelled").Seq)
	e.send("held", "quick", fmt.Sprintf(`"deadline":%q`, time.Now().Add(time.Second).Format(time.RFC3339Nano)))
	e.until("the held task is over at its deadline", func() bool { return e.row("held").State == task.Done })
}
