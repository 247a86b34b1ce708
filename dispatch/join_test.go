package dispatch_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// CLOWL-31.
func TestWhatIsHandedOverEntirelyAnswersForItself(t *testing.T) {
	for name, part := range map[string]part{"ok": answers("found"), "error": fails(envelope.AgentError)} {
		t.Run("CLOWL-31 "+name, func(t *testing.T) {
			s := newStage(t)
			s.cast("pm", tied(envelope.Transfer, notice("pm", "T1.1", "analyst", "do it all")))
			s.cast("analyst", part)
			s.start()
			s.order("T1", "pm")
			child := s.row("T1.1")
			s.wantEnd("T1", child.Status, child.Kind)
			s.wantResult("T1", `"agent_id": "analyst"`, `"task_id": "T1"`, `"mbx.answered_as": "T1.1"`)
			if len(s.runs("pm")) != 1 {
				t.Errorf("pm ran %d times; want once", len(s.runs("pm")))
			}
		})
	}
}

// CLOWL-32.
func TestAForkIsOnItsOwn(t *testing.T) {
	s := newStage(t)
	s.cast("pm", func(j task.Job) task.Outcome {
		o := decision(j, "mine")
		o.Messages = spoken(j, notice("pm", "T1.1", "analyst", "as well"))
		return o
	})
	s.cast("analyst", fails(envelope.AgentError))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	s.wantEnd("T1.1", envelope.Failed, envelope.AgentError)
	if len(s.runs("pm")) != 1 {
		t.Errorf("pm ran %d times; want once, for a fork concerns it no more", len(s.runs("pm")))
	}
}

// CLOWL-35.
func TestWorkThatGoesRoundInACircleEnds(t *testing.T) {
	s := newStage(t)
	s.cast("a", tied(envelope.Transfer, notice("a", "T1.1", "b", "yours")))
	s.cast("b", tied(envelope.Transfer, notice("b", "T1.1.1", "c", "yours")))
	s.cast("c", tied(envelope.Transfer, notice("c", "T1.1.1.1", "a", "yours")))
	s.start()
	s.order("T1", "a")
	s.wantEnd("T1.1.1.1", envelope.Rejected, envelope.DelegationCycle)
	for _, id := range []string{"T1.1.1", "T1.1", "T1"} {
		s.wantEnd(id, envelope.Failed, envelope.DelegationCycle)
	}
}

func TestWhatEndsATaskEndsWhatIsBelowIt(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "analyst", "count them"), notice("pm", "T1.2", "slow", "wait")))
	s.cast("analyst", says(task.Reply, question("analyst", "T1.1", "user", "all of them?")))
	s.start()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(notice("orchestrator", "T1", "pm", "look")))
	s.must(err)
	s.Look(t.Context())
	s.await("T1.2", task.Running)
	s.await("T1.1", task.Held)
	s.must(s.Cancel(t.Context(), "T1", core.By{Who: "uid 1000"}))
	s.must(s.Idle(t.Context()))
	for _, id := range []string{"T1", "T1.1", "T1.2"} {
		s.wantEnd(id, envelope.Stopped, envelope.Cancelled)
	}
}

// Names that a model uses again are no names.
func TestWhatIsHandedOnUnderATakenNameGetsAnotherOne(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1", "analyst", "count"), notice("pm", "T1", "analyst", "weigh")), answers("both"))
	s.cast("analyst", answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1.1", envelope.OK, "")
	s.wantEnd("T1.2", envelope.OK, "")
	s.wantEnd("T1", envelope.OK, "")
}

// AINL-46: a task's limit is over all its attempts and all its children.
func TestATaskThatWaitsForWordsReservesNothing(t *testing.T) {
	s := newStage(t)
	s.judge = func(asked envelope.Task, _ time.Time) task.Verdict {
		return task.Verdict{Admit: true, Terms: task.Terms{Budget: tokens(100), Accounts: []task.Account{{Owner: "all", Limit: tokens(100)}}}}
	}
	spend := func(p part) part {
		return func(j task.Job) task.Outcome {
			o := p(j)
			o.Result.Cost = &envelope.Cost{Tokens: 30}
			return o
		}
	}
	s.cast("pm", spend(says(task.Children, notice("pm", "T1.1", "analyst", "count them"))), spend(answers("all")))
	s.cast("analyst", spend(answers("42")))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	var left task.Balance
	s.must(s.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) (err error) {
		left, err = tx.Balance("all", task.Day(time.Now()))
		return err
	}))
	if left.Spent.Tokens != 90 || left.Reserved != (envelope.Cost{}) {
		t.Errorf("the account has spent %d and reserved %+v; want 90 and nothing", left.Spent.Tokens, left.Reserved)
	}
	if allowance := s.runs("pm")[1].Allowance; allowance.Tokens == nil || *allowance.Tokens != 40 {
		t.Errorf("pm goes on with %v; want the 40 that are left", allowance)
	}
}

// AINL-48: a person agreed to exactly this already.
func TestAPersonIsNotAskedAgainWhenATaskGoesOn(t *testing.T) {
	s := newStage(t)
	s.judge = func(asked envelope.Task, _ time.Time) task.Verdict {
		v := task.Verdict{Admit: true, Digest: "d"}
		if asked.Agent == "pm" {
			v.Hold = []task.Reason{task.Approval}
		}
		return v
	}
	s.cast("pm", says(task.Reply, question("pm", "T1", "user", "which region?")), answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.must(s.Approve(t.Context(), "T1", core.Person{Names: []string{"anna"}}, ""))
	s.must(s.Idle(t.Context()))
	s.wantHeld("T1", task.Reply)
	s.line(message("user", "T1", "pm", "the north"))
	s.wantEnd("T1", envelope.OK, "")
	s.wantEvent("T1", "approval.asked")
}

// A crash leaves each of these as the ledger has it.
func TestWhatWasWaitedForIsFoundAtTheNextStart(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "analyst", "count them")), answers("all counted"))
	s.cast("analyst", says(task.Reply, question("analyst", "T1.1", "user", "all?")), answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantHeld("T1", task.Children)
	s.restart()
	<-s.Ready()
	s.must(s.Idle(t.Context()))
	s.wantHeld("T1", task.Children)
	s.wantHeld("T1.1", task.Reply)
	child := s.row("T1.1")
	s.end()
	s.aside(func(tx *ledger.Tx) error { // it ends, and the daemon dies before it sees to T1
		change := task.Change{To: task.Done, Status: envelope.OK, Result: envelope.Result{TaskID: "T1.1", Status: envelope.OK}.Encode()}
		if _, err := tx.Move(child.Seq, task.Held, child.Attempt, change); err != nil {
			return err
		}
		return tx.MarkPut(child.Seq, true)
	})
	s.start()
	<-s.Ready()
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
}

func TestAChildWhoseParentEndedBeforeTheDaemonDiedIsStopped(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "analyst", "count them")))
	s.cast("analyst", says(task.Reply, question("analyst", "T1.1", "user", "all?")))
	s.start()
	s.order("T1", "pm")
	parent := s.row("T1")
	s.end()
	s.aside(func(tx *ledger.Tx) error {
		change := task.Change{To: task.Done, Status: envelope.Stopped, Result: envelope.Result{TaskID: "T1", Status: envelope.Stopped}.Encode()}
		if _, err := tx.Move(parent.Seq, task.Held, parent.Attempt, change); err != nil {
			return err
		}
		return tx.MarkPut(parent.Seq, true)
	})
	s.start()
	<-s.Ready()
	s.await("T1.1", task.Done)
	s.wantEnd("T1.1", envelope.Stopped, envelope.Cancelled)
}

// What is handed on, and then done without, goes on by itself.
func TestAnAgentThatDoesNotWaitLeavesWhatItHandedOnAlone(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "analyst", "count them")), answers("never mind"))
	s.cast("analyst", says(task.Reply, question("analyst", "T1.1", "pm", "all of them?")), answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	s.wantHeld("T1.1", task.Reply)
	s.line(message("user", "T1.1", "analyst", "yes"))
	s.wantEnd("T1.1", envelope.OK, "")
}

// CLOWL-09.
func TestWhatSeveralAreAskedForIsGathered(t *testing.T) {
	for name, tt := range map[string]struct {
		b      part
		status envelope.Status
		kind   envelope.Kind
	}{
		"all":  {answers("two"), envelope.OK, ""},
		"some": {fails(envelope.AgentError), envelope.Partial, ""},
		"asked": {func(j task.Job) task.Outcome {
			return says(task.Reply, question("b", string(j.Task.ID), "user", "which?"))(j)
		}, "", ""},
	} {
		t.Run("CLOWL-09 "+name, func(t *testing.T) {
			s := newStage(t)
			s.cast("a", answers("one"))
			s.cast("b", tt.b)
			s.start()
			s.line(`{"clowl":"0.2","mid":"m1","ts":1709078400,"p":"REQ","from":"ann","to":["a","b"],"cid":"c","body":{"t":"count","d":{}}}`)
			if tt.status == "" {
				s.wantHeld("m1", task.Children)
				s.must(s.Cancel(t.Context(), "m1", core.By{Who: "uid 1000"}))
				s.must(s.Idle(t.Context()))
				s.wantEnd("m1", envelope.Stopped, envelope.Cancelled)
				return
			}
			s.wantEnd("m1", tt.status, tt.kind)
			s.wantResult("m1", `"agent": "a"`, `"agent": "b"`, "one, revision 1")
		})
	}
}
