package dispatch_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

var (
	ada = core.Person{Names: []string{"ada"}, UID: 1000}
	eve = core.Person{Names: []string{"eve", "root"}}
)

// asking is a policy that wants an approval for a plan with this name.
func asking(digest string, need envelope.Approval) func(envelope.Task, time.Time) task.Verdict {
	return func(t envelope.Task, now time.Time) task.Verdict {
		if !t.Deadline.IsZero() && !now.Before(t.Deadline) {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is past"}}}
		}
		v := task.Verdict{Admit: true, Digest: digest, Terms: task.Terms{Deadline: t.Deadline, Approval: need, Approver: t.HumanApprover}}
		if need != envelope.ApprovalPost {
			v.Hold, v.Until = []task.Reason{task.Approval}, t.Deadline
		}
		return v
	}
}

// asked returns what was asked about the latest revision of a task.
func (e *engine) asked(id string) []task.Consent {
	e.t.Helper()
	list, err := e.parts.Ledger.Approvals(e.t.Context(), e.row(id).Seq)
	e.must(err)
	return list
}

// wantDecisions fails the test when other things came of what was asked.
func (e *engine) wantDecisions(id string, want ...task.Decision) {
	e.t.Helper()
	var got []task.Decision
	for _, c := range e.asked(id) {
		got = append(got, c.Decision)
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("decisions about %s are %q; want %q", id, got, want)
	}
}

func wantForbidden(t *testing.T, err error, words string) {
	t.Helper()
	if _, ok := errors.AsType[*core.ForbiddenError](err); !ok || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v; want a forbidden error with %q", err, words)
	}
}

func TestAnApprovedTaskRunsAndNotBefore(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("t1", "quick")
	e.wantHeld("t1", task.Approval)
	e.must(e.Approve(t.Context(), "t1", ada, "go on"))
	e.await("t1", task.Done)
	e.wantResult("t1", "done, revision 1")
	e.wantEvent("t1", "approval.asked")
	e.wantEvent("t1", "approval.approved")
	e.wantDecisions("t1", task.Approved)
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
	row := e.await("t1", task.Done)
	if row.Status != envelope.Rejected || row.Kind != envelope.ApprovalDenied || row.Attempt != 0 {
		t.Errorf("t1 = %s (%s), attempt %d; want rejected (approval_denied), 0", row.Status, row.Kind, row.Attempt)
	}
	e.wantResult("t1", `"rejected"`, `"approval_denied"`, "denied by ada: not on a Friday")
	e.wantEvent("t1", "approval.denied")
	e.wantDecisions("t1", task.Denied)
}

func TestOnlyWhoIsAskedMayDecide(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPre)
	e.start()
	e.send("any", "quick")
	e.send("named", "quick", `"human_approver":"ada"`)
	for id, c := range map[string]struct {
		who  core.Person
		want string
	}{
		"any":   {core.Person{Names: []string{"eve", "tester"}}, "another approver must decide"},
		"named": {eve, "only ada may decide"},
	} {
		wantForbidden(t, e.Approve(t.Context(), envelope.ID(id), c.who, ""), c.want)
		wantForbidden(t, e.Deny(t.Context(), envelope.ID(id), core.Person{UID: 7}, ""), "uid 7 is no approver")
		e.wantHeld(id, task.Approval)
		if _, data := e.history(id); !strings.Contains(data, c.want) || !strings.Contains(data, `"by":"eve"`) {
			t.Errorf("the events of %s is %s; want who was refused, and why", id, data)
		}
	}
	wantForbidden(t, e.Approve(t.Context(), "any", core.Person{Names: []string{"quick"}}, ""), "is the task's agent")
	e.must(e.Approve(t.Context(), "any", eve, ""))
	e.must(e.Approve(t.Context(), "named", core.Person{Names: []string{"adalovelace", "ada"}}, ""))
	e.await("any", task.Done)
	e.await("named", task.Done)
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
	e.wantHeld("t1", task.Approval)
	e.wantEvent("t1", "approval.refused")
	if err := e.RefuseApproval(t.Context(), "nobody", "x", "y"); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("RefuseApproval(nobody) = %v; want ErrUnknown", err)
	}
}

func TestOfManyWhoDecideOneDoes(t *testing.T) {
	e := newEngine(t)
	e.judge = asking("plan", envelope.ApprovalPost)
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Review)
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
			} else if _, ok := errors.AsType[*core.StateError](err); !ok {
				t.Errorf("deciding again = %v; want a state error", err)
			}
		})
	}
	crowd.Wait()
	if did.Load() != 1 {
		t.Errorf("%d of 16 decided; want 1", did.Load())
	}
	e.await("t1", task.Done)
	if n := len(e.asked("t1")); n != 1 {
		t.Errorf("%d things asked; want 1", n)
	}
}

// The deadline of a task limits its run only, so an answer can be in review after it. What was
// needed for its approval is needed then too.
func TestAnAnswerWhoseTaskIsRefusedNowNeedsTheSameProof(t *testing.T) {
	e := newEngine(t)
	var refused atomic.Bool
	plain := asking("plan", envelope.ApprovalPost)
	e.judge = func(asked envelope.Task, now time.Time) task.Verdict {
		if refused.Load() {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.DeadlineExceeded, Field: "deadline", Message: "is past"}}}
		}
		v := plain(asked, now)
		v.Proof = task.ProofKey
		return v
	}
	e.start()
	e.send("t1", "quick")
	e.await("t1", task.Review)
	refused.Store(true)
	wantForbidden(t, e.Approve(t.Context(), "t1", ada, ""), "policy.proof needs an approval with proof ssh")
	e.await("t1", task.Review)
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
		row, first := e.await(id, task.Done), e.asked(id)[0].Decision
		approved := said[i] == nil
		switch {
		case approved && row.Status == envelope.OK && first == task.Approved:
		case row.Kind == envelope.ApprovalExpired && first == task.Expired: // or approved, and not begun in time
		default:
			t.Errorf("%s: Approve = %v, decision %q, ended %s (%s)", id, said[i], first, row.Status, row.Kind)
		}
	}
}
