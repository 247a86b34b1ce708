package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

func TestWhatIsAskedAndSaidOutlastsRestarts(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")
	e.restart()
	e.wantHeld("t1", task.Approval, task.Paused)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.until("only the pause holds it", func() bool { return slices.Equal(e.row("t1").Reasons, []task.Reason{task.Paused}) })
	e.restart()
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", task.Done)
	e.wantDecisions("t1", task.Approved)
}

func TestAnApprovalIsVoidWhenWhatWouldBeRunIsAnother(t *testing.T) {
	e := newEngine(t)
	var plan atomic.Pointer[string]
	name := func(s string) { plan.Store(&s) }
	name("one")
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		return asking(*plan.Load(), envelope.ApprovalPre)(t, now)
	}
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("t1", "quick")

	name("two")
	e.ReevaluateAll() // as after SIGHUP
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 2 })
	e.wantDecisions("t1", task.Void, task.Undecided)

	name("three") // and nobody has noticed
	if err := e.Approve(t.Context(), "t1", ada, ""); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("Approve(another plan) = %v; want it refused", err)
	}
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 3 })
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	name("four")
	e.restart()
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 4 })
	e.wantDecisions("t1", task.Void, task.Void, task.Void, task.Undecided)
	e.wantHeld("t1", task.Approval, task.Paused)

	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.must(e.Resume(t.Context(), "quick", me))
	e.await("t1", task.Done)
}

func TestAnotherPlanIsFoundOutJustBeforeTheStart(t *testing.T) {
	e := newEngine(t)
	e.opts.Workers = 1
	var changed atomic.Bool
	e.judge = func(t envelope.Task, now time.Time) task.Verdict {
		if t.Agent == "slow" {
			return task.Verdict{Admit: true}
		}
		if changed.Load() {
			return asking("two", envelope.ApprovalPre)(t, now)
		}
		return asking("one", envelope.ApprovalPre)(t, now)
	}
	e.start()
	e.send("busy", "slow")
	e.await("busy", task.Running)
	e.send("t1", "quick")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Queued)
	changed.Store(true)
	e.must(e.Cancel(t.Context(), "busy", me))
	e.await("t1", task.Held)
	e.wantDecisions("t1", task.Void, task.Undecided)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
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
	if len(before) != 1 || before[0].Decision != task.Void {
		t.Errorf("the first revision's approval is %+v; want it void", before)
	}
	e.wantDecisions("t1", task.Undecided)
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 2")
}

func TestARetryByAPersonIsAskedAboutAndFurtherAttemptsAreNot(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.plays["flaky"] = func(_ context.Context, j task.Job) task.Outcome {
		o := decision(j, "no luck")
		o.Retry, o.Result.Status = true, envelope.Failed
		o.Exit = task.Exit{Code: 75, Started: time.Now(), Finished: time.Now()}
		return o
	}
	e.start()
	e.send("t1", "flaky")
	e.must(e.Approve(t.Context(), "t1", ada, ""))
	if row := e.await("t1", task.Done); row.Attempt != 2 {
		t.Errorf("t1 ended in attempt %d; want 2", row.Attempt)
	}
	e.wantDecisions("t1", task.Approved)
	e.must(e.Retry(t.Context(), "t1", me))
	e.wantHeld("t1", task.Approval)
	e.wantDecisions("t1", task.Undecided)
}

func TestNobodyDecidesInTime(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.ttl = 50 * time.Millisecond
	e.start()
	e.send("t1", "quick")
	row := e.await("t1", task.Done)
	if row.Status != envelope.Rejected || row.Kind != envelope.ApprovalExpired {
		t.Errorf("t1 = %s (%s); want rejected (approval_expired)", row.Status, row.Kind)
	}
	e.wantResult("t1", `"rejected"`, `"approval_expired"`, "nobody approved it")
	e.wantDecisions("t1", task.Expired)
	e.wantEvent("t1", "approval.expired")
}

func TestADeadlineEndsTheWaitForAPerson(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	for patience := 100 * time.Millisecond; ; patience *= 4 {
		id := "within-" + patience.String()
		soon := time.Now().Add(patience).Format(time.RFC3339Nano)
		e.send(id, "quick", `"human_approver":"ada"`, `"deadline":"`+soon+`"`)
		row := e.await(id, task.Done)
		if row.Kind == envelope.DeadlineExceeded && patience < time.Minute {
			continue // it was over before anybody could be asked
		}
		if row.Kind != envelope.ApprovalExpired {
			t.Errorf("%s ended as %s; want approval_expired", id, row.Kind)
		}
		e.wantResult(id, "ada did not approve it by")
		return
	}
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
		_, err := tx.Decide(task.Approved, old)
		return err
	}))
	e.restart()
	e.must(e.Resume(t.Context(), "quick", me))
	e.until("it is asked again, and waits for nothing else", func() bool {
		return len(e.asked("t1")) == 2 && slices.Equal(e.row("t1").Reasons, []task.Reason{task.Approval})
	})
	e.wantDecisions("t1", task.Expired, task.Undecided)
}

// leave writes a task x down as a daemon left it that had asked a person.
func leave(t *testing.T, l *ledger.Ledger, change task.Change, asked task.Consent, said task.Decision) {
	t.Helper()
	row := remember(t, l, task.Task{ID: "x", Revision: 1, State: task.Received})
	asked.Task = row.Seq
	err := l.Update(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Move(row.Seq, task.Received, 0, change)
		if err = errors.Join(err, tx.Ask(asked)); err != nil || said == task.Undecided {
			return err
		}
		list, err := tx.Approvals(row.Seq)
		if err != nil {
			return err
		}
		c := list[len(list)-1]
		c.Decision = said
		_, err = tx.Decide(task.Undecided, c)
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
	over := task.Consent{Stage: envelope.ApprovalPre, Digest: "plan", Asked: time.Now().Add(-time.Hour), Expires: time.Now().Add(-time.Minute)}
	leave(t, parts.Ledger, task.Change{To: task.Queued, Attempt: 1}, over, task.Approved)
	ran := make(chan task.Job, 9)
	agents := obliging(ran)
	agents.Judge = asking("plan", envelope.ApprovalPre)
	d := serve(t, parts, agents, 1)
	e := &engine{Dispatcher: d, parts: parts, t: t}
	<-d.Ready()
	e.must(d.Idle(t.Context()))
	e.wantHeld("x", task.Approval)
	e.wantDecisions("x", task.Expired, task.Undecided)
	if len(ran) > 0 {
		t.Error("x was run; want it to wait for a person")
	}
}

// A daemon may die between any two steps. What the ledger has then is enough
// to go on, and nobody is asked twice.
func TestADaemonThatDiesBetweenTwoStepsAsksNobodyTwice(t *testing.T) {
	answer := []byte(`{"schema_version":"1.0","task_id":"x","agent_id":"a","status":"ok","output":{"summary":"done","actions":[]}}`)
	pre := task.Consent{Stage: envelope.ApprovalPre, Digest: "plan", Asked: time.Now()}
	post := task.Consent{Stage: envelope.ApprovalPost, Digest: "sum", Asked: time.Now()}
	for name, c := range map[string]struct {
		state   task.State
		reasons []task.Reason
		asked   task.Consent
		said    task.Decision
		decides bool // a person has to, before it ends
	}{
		"asked before the run":     {task.Held, []task.Reason{task.Approval}, pre, task.Undecided, true},
		"approved":                 {task.Held, nil, pre, task.Approved, false},
		"approved and queued":      {task.Queued, nil, pre, task.Approved, false},
		"approved, and held still": {task.Held, []task.Reason{task.Approval}, pre, task.Approved, false},
		"asked after the run":      {task.Review, nil, post, task.Undecided, true},
		"released and not put":     {task.Done, nil, post, task.Approved, false},
	} {
		t.Run(name, func(t *testing.T) {
			parts := places(t)
			change := task.Change{To: c.state, Reasons: c.reasons}
			if c.asked.Stage == envelope.ApprovalPost {
				change.Attempt, change.Status, change.Result = 1, envelope.OK, answer
			}
			leave(t, parts.Ledger, change, c.asked, c.said)
			agents := obliging(make(chan task.Job, 9))
			agents.Judge = func(envelope.Task, time.Time) task.Verdict {
				return task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: "plan"}
			}
			d := serve(t, parts, agents, 1)
			if c.decides {
				if err := d.Approve(t.Context(), "x", ada, ""); err != nil {
					t.Fatal(err)
				}
			}
			e := &engine{Dispatcher: d, parts: parts, t: t}
			e.await("x", task.Done)
			e.wantDecisions("x", task.Approved)
			if text, err := mailbox.ReadResult(parts.Box.Path(), "x"); err != nil || !strings.Contains(string(text), `"ok"`) {
				t.Errorf("result = %s, %v; want the answer", text, err)
			}
		})
	}
}
