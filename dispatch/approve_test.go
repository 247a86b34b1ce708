package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

var (
	ada = dispatch.Person{Names: []string{"ada"}, UID: 1000}
	eve = dispatch.Person{Names: []string{"eve", "root"}}
)

// asking is a policy that wants an approval for a plan with this name.
func asking(digest string, need envelope.Approval) func(envelope.Task, time.Time) dispatch.Verdict {
	return func(t envelope.Task, now time.Time) dispatch.Verdict {
		if !t.Deadline.IsZero() && !now.Before(t.Deadline) {
			return dispatch.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is past"}}}
		}
		v := dispatch.Verdict{Admit: true, Digest: digest, Terms: ledger.Terms{Deadline: t.Deadline, Approval: need, Approver: t.HumanApprover}}
		if need != envelope.ApprovalPost {
			v.Hold, v.Until = []ledger.Reason{ledger.Approval}, t.Deadline
		}
		return v
	}
}

// asked returns what was asked about the latest revision of a task.
func (e *engine) asked(id string) []ledger.Consent {
	e.t.Helper()
	list, err := e.parts.Ledger.Approvals(e.t.Context(), e.row(id).Seq)
	e.must(err)
	return list
}

// wantDecisions fails the test when other things came of what was asked.
func (e *engine) wantDecisions(id string, want ...ledger.Decision) {
	e.t.Helper()
	var got []ledger.Decision
	for _, c := range e.asked(id) {
		got = append(got, c.Decision)
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("decisions about %s are %q; want %q", id, got, want)
	}
}

func wantForbidden(t *testing.T, err error, words string) {
	t.Helper()
	if _, ok := errors.AsType[*dispatch.ForbiddenError](err); !ok || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v; want a forbidden error with %q", err, words)
	}
}

func TestAnApprovedTaskRunsAndNotBefore(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick")
	e.wantHeld("t1", ledger.Approval)
	e.must(e.Approve(t.Context(), "t1", ada, "go on"))
	e.await("t1", ledger.Done)
	e.wantResult("t1", "done, revision 1")
	e.wantEvent("t1", "approval.asked")
	e.wantEvent("t1", "approval.approved")
	e.wantDecisions("t1", ledger.Approved)
	if c := e.asked("t1")[0]; c.Decider != "ada" || c.Note != "go on" || c.Digest != "plan" {
		t.Errorf("asked was %+v; want it decided by ada, with her note, about the plan", c)
	}
	wantState(t, e.Approve(t.Context(), "t1", ada, ""), "done already (ok)")
	if err := e.Approve(t.Context(), "nobody", ada, ""); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Approve(nobody) = %v; want ErrUnknown", err)
	}
}

func TestADeniedTaskIsRejectedInWriting(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick")
	e.must(e.Deny(t.Context(), "t1", ada, "not on a Friday"))
	row := e.await("t1", ledger.Done)
	if row.Status != envelope.Rejected || row.Kind != envelope.ApprovalDenied || row.Attempt != 0 {
		t.Errorf("t1 = %s (%s), attempt %d; want rejected (approval_denied), 0", row.Status, row.Kind, row.Attempt)
	}
	e.wantResult("t1", `"rejected"`, `"approval_denied"`, "denied by ada: not on a Friday")
	e.wantEvent("t1", "approval.denied")
	e.wantDecisions("t1", ledger.Denied)
}

func TestOnlyWhoIsAskedMayDecide(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("any", "quick")
	e.send("named", "quick", `"human_approver":"ada"`)
	for id, c := range map[string]struct {
		who  dispatch.Person
		want string
	}{
		"any":   {dispatch.Person{Names: []string{"eve", "tester"}}, "nobody approves their own"},
		"named": {eve, "only ada may decide"},
	} {
		wantForbidden(t, e.Approve(t.Context(), envelope.ID(id), c.who, ""), c.want)
		wantForbidden(t, e.Deny(t.Context(), envelope.ID(id), dispatch.Person{UID: 7}, ""), "uid 7 is no approver")
		e.wantHeld(id, ledger.Approval)
		if _, data := e.story(id); !strings.Contains(data, c.want) || !strings.Contains(data, `"by":"eve"`) {
			t.Errorf("the story of %s is %s; want who was refused, and why", id, data)
		}
	}
	wantForbidden(t, e.Approve(t.Context(), "any", dispatch.Person{Names: []string{"quick"}}, ""), "is the task's agent")
	e.must(e.Approve(t.Context(), "any", eve, ""))
	e.must(e.Approve(t.Context(), "named", dispatch.Person{Names: []string{"adalovelace", "ada"}}, ""))
	e.await("any", ledger.Done)
	e.await("named", ledger.Done)
	if c := e.asked("named")[0]; c.Decider != "ada" {
		t.Errorf("decided by %q; want the name that was asked for", c.Decider)
	}
}

func TestAnAttemptToApproveFromARunIsRemembered(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick")
	e.must(e.RefuseApproval(t.Context(), "t1", "pid 7 of uid 1000", "it belongs to a run"))
	e.wantHeld("t1", ledger.Approval)
	e.wantEvent("t1", "approval.refused")
	if err := e.RefuseApproval(t.Context(), "nobody", "x", "y"); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("RefuseApproval(nobody) = %v; want ErrUnknown", err)
	}
}

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
	e.until("it is asked again", func() bool { return len(e.asked("t1")) == 2 })
	e.wantDecisions("t1", ledger.Expired, ledger.Undecided)
	e.wantHeld("t1", ledger.Approval)
}

func TestOfManyWhoDecideOneDoes(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.start()
	e.send("t1", "quick")
	e.await("t1", ledger.Review)
	var crowd sync.WaitGroup
	var did atomic.Int32
	for n := range 16 {
		crowd.Go(func() {
			decide := e.Approve
			if n%2 == 1 {
				decide = e.Deny
			}
			err := decide(t.Context(), "t1", ada, "")
			if err == nil {
				did.Add(1)
			} else if _, ok := errors.AsType[*dispatch.StateError](err); !ok {
				t.Errorf("deciding again = %v; want a state error", err)
			}
		})
	}
	crowd.Wait()
	if did.Load() != 1 {
		t.Errorf("%d of 16 decided; want 1", did.Load())
	}
	e.await("t1", ledger.Done)
	if n := len(e.asked("t1")); n != 1 {
		t.Errorf("%d things asked; want 1", n)
	}
}

func TestAnApprovalAndItsExpiryDoNotBothHappen(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.ttl = 20 * time.Millisecond
	e.start()
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	said := make([]error, len(ids))
	var crowd sync.WaitGroup
	for i, id := range ids {
		e.send(id, "quick")
		crowd.Go(func() { said[i] = e.Approve(t.Context(), envelope.ID(id), ada, "") })
	}
	crowd.Wait()
	for i, id := range ids {
		row, first := e.await(id, ledger.Done), e.asked(id)[0].Decision
		approved := said[i] == nil
		switch {
		case approved && row.Status == envelope.OK && first == ledger.Approved:
		case row.Kind == envelope.ApprovalExpired && first == ledger.Expired: // or approved, and not begun in time
		default:
			t.Errorf("%s: Approve = %v, decision %q, ended %s (%s)", id, said[i], first, row.Status, row.Kind)
		}
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
		"asked before the run":      {ledger.Held, []ledger.Reason{ledger.Approval}, pre, ledger.Undecided, true},
		"approved":                  {ledger.Held, nil, pre, ledger.Approved, false},
		"approved and queued":       {ledger.Queued, nil, pre, ledger.Approved, false},
		"approved, and held still":  {ledger.Held, []ledger.Reason{ledger.Approval}, pre, ledger.Approved, false},
		"asked after the run":       {ledger.Review, nil, post, ledger.Undecided, true},
		"released and not put":      {ledger.Done, nil, post, ledger.Approved, false},
	} {
		t.Run(name, func(t *testing.T) {
			parts := places(t)
			row := remember(t, parts.Ledger, ledger.Task{ID: "x", Revision: 1, State: ledger.Received})
			c.asked.Task = row.Seq
			if err := parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) error {
				change := ledger.Change{To: c.state, Reasons: c.reasons}
				if c.asked.Stage == envelope.ApprovalPost {
					change.Attempt, change.Status, change.Result = 1, envelope.OK, answer
				}
				_, err := tx.Move(row.Seq, ledger.Received, 0, change)
				if err = errors.Join(err, tx.Ask(c.asked)); err != nil || c.said == ledger.Undecided {
					return err
				}
				said, _, err := tx.Consent(row.Seq, c.asked.Stage)
				said.Decision = c.said
				_, err2 := tx.Decide(ledger.Undecided, said)
				return errors.Join(err, err2)
			}); err != nil {
				t.Fatal(err)
			}
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
