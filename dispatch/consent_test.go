package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

func TestWhatIsAskedAndSaidOutlastsRestarts(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.restart()
	e.wantHeld("t1", ledger.Approval, ledger.Paused)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.until("only the pause holds it", func() bool { return slices.Equal(e.row("t1").Reasons, []ledger.Reason{ledger.Paused}) })
	e.restart()
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", ledger.Done)
	e.wantDecisions("t1", ledger.Approved)
}

func TestAnApprovalIsVoidWhenWhatWouldBeRunIsAnother(t *testing.T) {
	e := newEngine(t)
	var plan atomic.Pointer[string]
	name := func(s string) { plan.Store(&s) }
	name("one")
	e.judge = func(t envelope.Task, now time.Time) dispatch.Verdict {
		return asking(*plan.Load(), envelope.ApprovalPre)(t, now)
	}
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")

	name("two")
	e.Rejudge() // as after SIGHUP
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 2 })
	e.wantDecisions("t1", ledger.Void, ledger.Undecided)

	name("three") // and nobody has noticed
	if err := e.Approve(t.Context(), "t1", ada, ""); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("Approve(another plan) = %v; want it refused", err)
	}
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 3 })
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	name("four")
	e.restart()
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 4 })
	e.wantDecisions("t1", ledger.Void, ledger.Void, ledger.Void, ledger.Undecided)
	e.wantHeld("t1", ledger.Approval, ledger.Paused)

	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", ledger.Done)
}

func TestAnotherPlanIsFoundOutJustBeforeTheStart(t *testing.T) {
	e := newEngine(t)
	e.opts.Workers = 1
	var changed atomic.Bool
	e.judge = func(t envelope.Task, now time.Time) dispatch.Verdict {
		if t.Agent == "slow" {
			return dispatch.Verdict{Admit: true}
		}
		if changed.Load() {
			return asking("two", envelope.ApprovalPre)(t, now)
		}
		return asking("one", envelope.ApprovalPre)(t, now)
	}
	e.start()
	e.send("busy", "slow")
	e.await("busy", ledger.Running)
	e.send("t1", "quick")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", ledger.Queued)
	changed.Store(true)
	e.must(e.Cancel(t.Context(), "busy", me))
	e.await("t1", ledger.Held)
	e.wantDecisions("t1", ledger.Void, ledger.Undecided)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", ledger.Done)
}

func TestANewRevisionIsAskedAboutAnew(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick")
	first := e.row("t1").Seq
	e.send("t1", "quick", `"metadata":{"n":2}`)
	before, err := e.parts.Ledger.Approvals(t.Context(), first)
	e.must(err)
	if len(before) != 1 || before[0].Decision != ledger.Void {
		t.Errorf("the first revision's approval is %+v; want it void", before)
	}
	e.wantDecisions("t1", ledger.Undecided)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", ledger.Done)
	e.wantResult("t1", "done, revision 2")
}

func TestARetryByAPersonIsAskedAboutAndFurtherAttemptsAreNot(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.plays["flaky"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		o := answer(j, "no luck")
		o.Retry, o.Result.Status = true, envelope.Failed
		o.Exit = runner.Exit{Code: 75, Started: time.Now(), Finished: time.Now()}
		return o
	}
	e.start()
	e.send("t1", "flaky")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	if row := e.await("t1", ledger.Done); row.Attempt != 2 {
		t.Errorf("t1 ended in attempt %d; want 2", row.Attempt)
	}
	e.wantDecisions("t1", ledger.Approved)
	e.must(e.Retry(t.Context(), "t1", me))
	e.wantHeld("t1", ledger.Approval)
	e.wantDecisions("t1", ledger.Undecided)
}

func TestNobodyDecidesInTime(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.ttl = 50 * time.Millisecond
	e.start()
	e.send("t1", "quick")
	row := e.await("t1", ledger.Done)
	if row.Status != envelope.Rejected || row.Kind != envelope.ApprovalExpired {
		t.Errorf("t1 = %s (%s); want rejected (approval_expired)", row.Status, row.Kind)
	}
	e.wantResult("t1", `"rejected"`, `"approval_expired"`, "nobody approved it")
	e.wantDecisions("t1", ledger.Expired)
	e.wantEvent("t1", "approval.expired")
}

func TestADeadlineEndsTheWaitForAPerson(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick", `"human_approver":"ada"`, `"deadline":"`+time.Now().Add(100*time.Millisecond).Format(time.RFC3339Nano)+`"`)
	row := e.await("t1", ledger.Done)
	if row.Kind != envelope.ApprovalExpired {
		t.Errorf("t1 ended as %s; want approval_expired", row.Kind)
	}
	e.wantResult("t1", "ada did not approve it by")
}

func TestAnApprovalThatWasNotUsedInTimeIsAskedForAgain(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.ttl = time.Hour
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	old := e.asked("t1")[0]
	old.Expires = time.Now().Add(-time.Second)
	e.must(e.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Decide(ledger.Approved, old)
		return err
	}))
	e.restart()
	e.must(e.Resume(t.Context(), "quick", me))
	e.until("it is asked again, and waits for nothing else", func() bool {
		return len(e.asked("t1")) == 2 && slices.Equal(e.row("t1").Reasons, []ledger.Reason{ledger.Approval})
	})
	e.wantDecisions("t1", ledger.Expired, ledger.Undecided)
}

// leave writes a task x down as a daemon left it that had asked a person.
func leave(t *testing.T, l *ledger.Ledger, change ledger.Change, asked ledger.Consent, said ledger.Decision) {
	t.Helper()
	row := remember(t, l, ledger.Task{ID: "x", Revision: 1, State: ledger.Received})
	asked.Task = row.Seq
	err := l.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Move(row.Seq, ledger.Received, 0, change)
		if err = errors.Join(err, tx.Ask(asked)); err != nil || said == ledger.Undecided {
			return err
		}
		c, _, err := tx.Consent(row.Seq, asked.Stage)
		if err != nil {
			return err
		}
		c.Decision = said
		_, err = tx.Decide(ledger.Undecided, c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An intent that came to nothing, of a task that got ready before its turn, is no
// beginning.
func TestAnApprovalUnderWhichNothingBeganIsAskedForAgain(t *testing.T) {
	parts := places(t)
	over := ledger.Consent{Stage: envelope.ApprovalPre, Digest: "plan", Asked: time.Now().Add(-time.Hour), Expires: time.Now().Add(-time.Minute)}
	leave(t, parts.Ledger, ledger.Change{To: ledger.Queued, Attempt: 1}, over, ledger.Approved)
	ran := make(chan dispatch.Job, 9)
	agents := obliging(ran)
	agents.Judge = asking("plan", envelope.ApprovalPre)
	d := serve(t, parts, agents, 1)
	e := &engine{Dispatcher: d, parts: parts, t: t}
	<-d.Ready()
	e.must(d.Idle(t.Context()))
	e.wantHeld("x", ledger.Approval)
	e.wantDecisions("x", ledger.Expired, ledger.Undecided)
	if len(ran) > 0 {
		t.Error("x was run; want it to wait for a person")
	}
}

// A daemon may die between any two steps. What the ledger has then is enough
// to go on, and nobody is asked twice.
func TestADaemonThatDiesBetweenTwoStepsAsksNobodyTwice(t *testing.T) {
	answer := []byte(`{"schema_version":"1.0","task_id":"x","agent_id":"a","status":"ok","output":{"summary":"done","actions":[]}}`)
	pre := ledger.Consent{Stage: envelope.ApprovalPre, Digest: "plan", Asked: time.Now()}
	post := ledger.Consent{Stage: envelope.ApprovalPost, Digest: "sum", Asked: time.Now()}
	for name, c := range map[string]struct {
		state   ledger.State
		reasons []ledger.Reason
		asked   ledger.Consent
		said    ledger.Decision
		decides bool // a person has to, before it ends
	}{
		"asked before the run":     {ledger.Held, []ledger.Reason{ledger.Approval}, pre, ledger.Undecided, true},
		"approved":                 {ledger.Held, nil, pre, ledger.Approved, false},
		"approved and queued":      {ledger.Queued, nil, pre, ledger.Approved, false},
		"approved, and held still": {ledger.Held, []ledger.Reason{ledger.Approval}, pre, ledger.Approved, false},
		"asked after the run":      {ledger.Review, nil, post, ledger.Undecided, true},
		"released and not put":     {ledger.Done, nil, post, ledger.Approved, false},
	} {
		t.Run(name, func(t *testing.T) {
			parts := places(t)
			change := ledger.Change{To: c.state, Reasons: c.reasons}
			if c.asked.Stage == envelope.ApprovalPost {
				change.Attempt, change.Status, change.Result = 1, envelope.OK, answer
			}
			leave(t, parts.Ledger, change, c.asked, c.said)
			agents := obliging(make(chan dispatch.Job, 9))
			agents.Judge = func(envelope.Task, time.Time) dispatch.Verdict {
				return dispatch.Verdict{Admit: true, Hold: []ledger.Reason{ledger.Approval}, Digest: "plan"}
			}
			d := serve(t, parts, agents, 1)
			if c.decides {
				if err := d.Approve(t.Context(), "x", ada, ""); err != nil {
					t.Fatal(err)
				}
			}
			e := &engine{Dispatcher: d, parts: parts, t: t}
			e.await("x", ledger.Done)
			e.wantDecisions("x", ledger.Approved)
			if text, err := mailbox.ReadResult(parts.Box.Path(), "x"); err != nil || !strings.Contains(string(text), `"ok"`) {
				t.Errorf("result = %s, %v; want the answer", text, err)
			}
		})
	}
}
