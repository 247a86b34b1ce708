package dispatch_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// claim claims what is oldest in the inbox of the editor.
func (e *engine) claim() dispatch.Lease {
	e.t.Helper()
	l, found, err := e.Claim(e.t.Context(), "editor", me, dispatch.Claimer{})
	if e.must(err); !found {
		e.t.Fatal("nothing waits for the editor")
	}
	return l
}

// submit answers for the editor.
func (e *engine) submit(id envelope.ID, token, words string) error {
	return e.Submit(e.t.Context(), id, dispatch.Submission{Agent: "editor", Token: token, Answer: []byte(words)}, me)
}

// lapsing has leases last no time that anybody could see.
func lapsing(t *testing.T) *engine {
	e := newEngine(t)
	e.inboxes["editor"] = store.Inbox{File: "agents/editor/inbox.jsonl", Lease: time.Nanosecond}
	e.start()
	return e
}

// lapsed blocks until so many leases of a task have lapsed.
func (e *engine) lapsed(id string, times int) {
	e.t.Helper()
	e.until("the lease is over", func() bool {
		kinds, _ := e.history(id)
		return len(slices.DeleteFunc(kinds, func(k string) bool { return k != "lease.expired" })) >= times
	})
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v; want %v", what, err, want)
	}
}

func TestWhoClaimsATaskAnswersIt(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	e.delivered("t2")
	l := e.claim()
	if l.Task.ID != "t1" || len(l.Request) == 0 {
		t.Fatalf("claimed %s; want t1, the oldest, with its request", l.Task.ID)
	}
	wantError(t, "a submission without the lease", e.submit("t1", "", "stolen"), core.ErrLeased)
	wantError(t, "a submission with another lease", e.submit("t1", "made-up", "stolen"), core.ErrLeased)
	if second := e.claim(); second.Task.ID != "t2" {
		t.Errorf("claimed %s; want t2", second.Task.ID)
	}
	if _, found, err := e.Claim(t.Context(), "editor", me, dispatch.Claimer{}); found || err != nil {
		t.Errorf("a third claim = %v, %v; want nothing", found, err)
	}
	e.must(e.submit("t1", l.Token, "done by the editor"))
	e.await("t1", task.Done)
	e.wantResult("t1", "done by the editor", `"tokens": 5`)
	wantState(t, e.submit("t1", l.Token, "once more"), "done already (ok)")
}

func TestWhatNobodyHasClaimedIsAnsweredWithoutALease(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	wantError(t, "no answer", e.submit("t1", "", "?"), dispatch.ErrNoAnswer)
	err := e.Submit(t.Context(), "t1", dispatch.Submission{Agent: "quick", Answer: []byte("x")}, me)
	if _, ok := errors.AsType[*core.ForbiddenError](err); !ok {
		t.Errorf("an answer of another agent = %v; want it forbidden", err)
	}
	wantError(t, "an answer to nothing", e.submit("t9", "", "x"), ledger.ErrUnknown)
	if row := e.row("t1"); row.State != task.Waiting {
		t.Fatalf("t1 is %s; want it still waiting", row.State)
	}
	e.must(e.submit("t1", "", "just so"))
	e.await("t1", task.Done)
	e.wantResult("t1", "just so")
}

func TestALeaseThatLapsedReturnsTheTask(t *testing.T) {
	e := lapsing(t)
	e.delivered("t1")
	first := e.claim()
	e.lapsed("t1", 1)
	if row := e.row("t1"); row.State != task.Waiting || !row.Until.IsZero() {
		t.Errorf("t1 is %s until %v; want it waiting, and nobody's", row.State, row.Until)
	}
	_, err := e.Renew(t.Context(), "t1", "editor", first.Token)
	wantError(t, "renewing what is over", err, core.ErrLeaseOver)
	second := e.claim()
	e.lapsed("t1", 2)
	wantError(t, "an answer by the one before", e.submit("t1", first.Token, "late"), core.ErrLeaseOver)
	e.must(e.submit("t1", second.Token, "late, and nobody else has it"))
	e.await("t1", task.Done)
	e.wantResult("t1", "late, and nobody else has it")
}

func TestALeaseSurvivesARestartAndCanBeRenewed(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	l := e.claim()
	e.restart()
	until, err := e.Renew(t.Context(), "t1", "editor", l.Token)
	if e.must(err); !until.After(l.Until) {
		t.Errorf("renewed until %v; want it after %v", until, l.Until)
	}
	_, err = e.Renew(t.Context(), "t1", "editor", "made-up")
	wantError(t, "renewing the lease of somebody else", err, core.ErrLeased)
	wantError(t, "a submission without the lease", e.submit("t1", "", "stolen"), core.ErrLeased)
	e.must(e.submit("t1", l.Token, "after a restart"))
	e.await("t1", task.Done)
	e.wantInbox("t1", 1)
}

func TestCancelEndsWhatWaitsAndRefusesItsAnswer(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	l := e.claim()
	e.must(e.Cancel(t.Context(), "t1", me))
	if row := e.await("t1", task.Done); row.Status != envelope.Stopped {
		t.Errorf("t1 is %s; want cancelled", row.Status)
	}
	e.wantResult("t1", "cancelled by ada")
	wantState(t, e.submit("t1", l.Token, "too late"), "done already (cancelled)")
}

func TestALaterRevisionWaitsBehindOneThatIsClaimed(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1", `"metadata":{"n":1}`)
	l := e.claim()
	e.send("t1", "editor", `"metadata":{"n":2}`)
	if row := e.row("t1"); row.State != task.Received {
		t.Fatalf("revision 2 is %s; want received", row.State)
	}
	e.must(e.submit("t1", l.Token, "first"))
	e.until("revision 2 waits", func() bool { return e.row("t1").State == task.Waiting })
	wantError(t, "an answer to what was asked before", e.submit("t1", l.Token, "again"), core.ErrLeaseOver)
	e.must(e.submit("t1", e.claim().Token, "second"))
	e.await("t1", task.Done)
	e.wantResult("t1", "second, revision 2")
}

func TestALaterRevisionTakesThePlaceOfOneWhoseLeaseLapsed(t *testing.T) {
	e := newEngine(t)
	e.inboxes["editor"] = store.Inbox{File: "agents/editor/inbox.jsonl", Lease: 500 * time.Millisecond}
	e.start()
	e.delivered("t1", `"metadata":{"n":1}`)
	e.claim()
	e.send("t1", "editor", `"metadata":{"n":2}`)
	e.lapsed("t1", 1)
	row := e.await("t1", task.Waiting)
	if row.Revision != 2 {
		t.Errorf("revision %d waits; want 2", row.Revision)
	}
	e.must(e.submit("t1", "", "to the latest"))
	e.await("t1", task.Done)
	e.wantResult("t1", "to the latest, revision 2")
}

func TestAnAnswerIsSettledAgainstTheBudgetOfItsTask(t *testing.T) {
	tokens := int64(4)
	e := newEngine(t)
	e.judge = func(asked envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Admit: true, Terms: task.Terms{Budget: envelope.Budget{Tokens: &tokens}}}
	}
	e.start()
	e.delivered("t1")
	l := e.claim()
	if l.Spend.Tokens == nil || *l.Spend.Tokens != 4 {
		t.Errorf("%v may be spent; want 4 tokens", l.Spend.Tokens)
	}
	e.must(e.submit("t1", l.Token, "costly"))
	if row := e.await("t1", task.Done); row.Kind != envelope.BudgetExceeded {
		t.Errorf("t1 is %s (%s); want budget_exceeded", row.Status, row.Kind)
	}
	e.wantEvent("t1", "budget.settled")
}

func TestAnAnswerThatHasToBeApprovedIsNotShownBefore(t *testing.T) {
	e := newEngine(t)
	e.judge = afterwards
	e.start()
	e.delivered("t1")
	e.must(e.submit("t1", "", "for a person to see first"))
	e.await("t1", task.Review)
	if text := e.result("t1"); text != "" {
		t.Errorf("result = %s; want none before the approval", text)
	}
	e.must(e.Approve(t.Context(), "t1", core.Person{Names: []string{"bob"}}, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "for a person to see first")
}

func TestAPausedAgentClaimsNothing(t *testing.T) {
	e := startEngine(t)
	e.delivered("t1")
	e.must(e.Pause(t.Context(), "editor", me))
	for _, agent := range []string{"editor", "quick", "nobody"} {
		_, _, err := e.Claim(t.Context(), agent, me, dispatch.Claimer{})
		if _, ok := errors.AsType[*core.ForbiddenError](err); !ok {
			t.Errorf("Claim(%s) = %v; want it forbidden", agent, err)
		}
	}
	e.must(e.Resume(t.Context(), "editor", me))
	e.claim()
}
