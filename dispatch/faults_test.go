package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/slowtest"
)

func TestATaskThatWaitsForABudgetIsWokenAlsoWhenTheLedgerCannotBeReadAtFirst(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.start()
	e.send("first", "chief", `"budget_limit":{"tokens":900}`)
	e.awaitWork("first")
	words["chief"] <- 1
	first := e.await("first", task.Done)
	e.must(e.Pause(t.Context(), "clerk", me))
	e.send("second", "clerk", `"budget_limit":{"tokens":900}`)
	paused := e.await("second", task.Held)
	waits := []task.Wait{{Reason: task.Capacity, Key: task.AccountKey("requester:tester", task.Day(time.Now())), Needs: "900 of 1000 tokens"}}
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Move(paused.Seq, task.Held, 0, task.Change{To: task.Held, Reasons: []task.Reason{task.Capacity}, Waits: waits})
		return err
	}))
	e.Follow(t.Context(), store.Move{Before: paused, After: e.row("second")})
	e.must(e.Resume(t.Context(), "clerk", me))
	unreadable, cancel := context.WithCancel(t.Context())
	cancel()
	e.Settled(unreadable, first)
	e.awaitWork("second")
	words["clerk"] <- 1
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
