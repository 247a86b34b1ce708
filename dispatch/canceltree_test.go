package dispatch_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// delegating makes an engine whose agents chief, clerk and hand work until they are ended.
func delegating(t *testing.T) *engine {
	e := newEngine(t)
	for _, agent := range []string{"chief", "clerk", "hand"} {
		e.plays[agent] = slow
	}
	e.judge = func(t envelope.Task, _ time.Time) task.Verdict {
		v := task.Verdict{Admit: true}
		if t.ID == "waits" || t.ID == "other" {
			v.Hold = []task.Reason{task.Approval}
		}
		return v
	}
	return e
}

func idsOf(tasks []task.Task) (ids []string) {
	for _, t := range tasks {
		ids = append(ids, string(t.ID))
	}
	return ids
}

func TestCancelTreeEndsTheTaskAndAllOpenTasksBelowIt(t *testing.T) {
	e := delegating(t)
	e.start()
	e.ask("tester", "top", "chief")
	e.awaitWork("top")
	e.ask("chief", "child", "clerk")
	e.awaitWork("child")
	e.ask("clerk", "grandchild", "hand")
	e.awaitWork("grandchild")
	e.ask("chief", "waits", "quick")
	e.await("waits", task.Held)
	e.ask("chief", "finished", "quick")
	e.await("finished", task.Done)
	e.ask("tester", "other", "quick")
	e.await("other", task.Held)
	cancelled, err := e.CancelTree(t.Context(), "top", me)
	if got, want := idsOf(cancelled), []string{"child", "waits", "grandchild"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("CancelTree(top) = %v, %v; want %v", got, err, want)
	}
	for _, id := range []string{"top", "child", "grandchild", "waits"} {
		if row := e.row(id); row.State != task.Done || row.Status != envelope.Stopped || row.Kind != envelope.Cancelled {
			t.Errorf("%s = %s %s (%s); want it cancelled", id, row.State, row.Status, row.Kind)
		}
	}
	if finished, other := e.row("finished"), e.row("other"); finished.Status != envelope.OK || other.State != task.Held {
		t.Errorf("finished ended %s, and other is %s; want ok and held, for neither was to be cancelled", finished.Status, other.State)
	}
	e.await("grandchild", task.Done)
	e.wantResult("grandchild", "cancelled by ada: together with top: looks wrong")
	_, err = e.CancelTree(t.Context(), "top", me)
	wantState(t, err, "done already (cancelled)")
}

func TestCancelTreeEndsWhatIsOpenBelowATaskThatIsDone(t *testing.T) {
	e := delegating(t)
	e.start()
	e.ask("tester", "top", "chief")
	e.awaitWork("top")
	e.ask("chief", "child", "clerk")
	e.awaitWork("child")
	e.ask("clerk", "grandchild", "hand")
	e.awaitWork("grandchild")
	e.must(e.Cancel(t.Context(), "top", me))
	e.must(e.Cancel(t.Context(), "child", me))
	if row := e.row("grandchild"); row.State != task.Running {
		t.Fatalf("grandchild is %s; want it to go on, for only the tasks above it were cancelled", row.State)
	}
	cancelled, err := e.CancelTree(t.Context(), "top", core.By{Who: "ada"})
	if got := idsOf(cancelled); err != nil || !slices.Equal(got, []string{"grandchild"}) {
		row := e.row("grandchild")
		t.Errorf("CancelTree(top) = %v, %v; want grandchild, which is %s %s %v\n%s", got, err, row.State, row.Kind, row.Reasons, e.log.String())
	}
}

// The run writes the line of another task while it is being ended.
func TestCancelTreeEndsATaskThatARunAskedForAtItsEnd(t *testing.T) {
	e := delegating(t)
	e.plays["chief"] = func(ctx context.Context, j task.Job) task.Outcome {
		<-ctx.Done()
		e.append("chief", "late", "clerk")
		return slow(ctx, j)
	}
	e.plays["clerk"] = func(ctx context.Context, j task.Job) task.Outcome {
		<-ctx.Done()
		e.append("clerk", "later", "hand")
		return slow(ctx, j)
	}
	e.start()
	e.ask("tester", "top", "chief")
	e.awaitWork("top")
	cancelled, err := e.CancelTree(t.Context(), "top", me)
	if err != nil || len(cancelled) == 0 || cancelled[0].ID != "late" {
		t.Errorf("CancelTree(top) = %v, %v; want late first", idsOf(cancelled), err)
	}
	open, err := e.parts.Ledger.OpenBelow(t.Context(), "top")
	if err != nil || len(open) > 0 {
		t.Errorf("open below top = %v, %v; want none", idsOf(open), err)
	}
	if row := e.row("late"); row.State != task.Done || row.Parent != e.row("top").Seq {
		t.Errorf("late is %s, below %d; want it done, below top", row.State, row.Parent)
	}
}
