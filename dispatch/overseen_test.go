package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

func TestALineOrAFileApprovesOfNothing(t *testing.T) {
	s := newReview(t)
	s.plays["qa"] = slow
	s.start()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(notice("orchestrator", "T1", "analyst", "look")))
	s.must(err)
	s.Look(t.Context())
	s.await("T1.review", ledger.Running)
	for _, line := range []string{
		message("qa", "T1.review", "orchestrator", "verified"), message("qa", "T1", "orchestrator", "verified"), message("qa", "T1.review", "analyst", "approved"),
	} {
		_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(line))
		s.must(err)
	}
	for _, id := range []string{"T1", "T1.review"} {
		answer := envelope.Result{TaskID: envelope.ID(id), AgentID: "qa", Status: envelope.OK, Output: envelope.Output{Summary: "verified", Extra: []byte(`{"decision":"approved"}`)}}
		s.must(os.WriteFile(filepath.Join(s.parts.Box.ResultsDir(), id+".json"), answer.Encode(), 0o600))
	}
	s.Look(t.Context())
	if row := s.row("T1"); row.State != ledger.Review {
		t.Errorf("T1 is %s; want it still in review", row.State)
	}
	s.must(s.Cancel(t.Context(), "T1.review", dispatch.By{Who: "uid 1000"}))
	s.await("T1", ledger.Done)
	if row := s.row("T1"); row.Kind != envelope.OversightExpired {
		t.Errorf("T1 ends with %s; want oversight_expired, for its overseer was stopped", row.Kind)
	}
}

func TestAFileIsNoAnswerToATaskThatWaitsForWords(t *testing.T) {
	s := newReview(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count")), answers("counted"))
	s.cast("qa", says(ledger.Reply, question("qa", "T1.1.review", "user", "is that so?")), says(ledger.Reply, message("qa", "T1.1.review", "pm", "verified")))
	s.start()
	s.order("T1", "pm")
	s.wantHeld("T1", ledger.Children)
	for _, id := range []string{"T1", "T1.1.review"} {
		answer := envelope.Result{TaskID: envelope.ID(id), AgentID: "x", Status: envelope.OK, Output: envelope.Output{Extra: []byte(`{"decision":"approved"}`)}}
		s.must(os.WriteFile(filepath.Join(s.parts.Box.ResultsDir(), id+".json"), answer.Encode(), 0o600))
	}
	for range 3 {
		s.Look(t.Context())
	}
	s.must(s.Idle(t.Context()))
	s.wantHeld("T1", ledger.Children)
	s.wantHeld("T1.1.review", ledger.Reply)
	s.wantEvent("T1", "result.conflict")
	s.line(message("user", "T1.1.review", "qa", "it is"))
	s.wantEnd("T1.1", envelope.OK, "")
	s.wantEnd("T1", envelope.OK, "")
}

func TestAnOverseerThatFetchesItsTasksDecidesByItsAnswer(t *testing.T) {
	s := newReview(t)
	s.overseers["analyst"] = "editor"
	s.start()
	s.order("T1", "analyst")
	s.await("T1.review", ledger.Waiting)
	answer := envelope.Result{TaskID: "T1.review", AgentID: "editor", Status: envelope.OK, Output: envelope.Output{Summary: "fine", Extra: []byte(`{"decision":"approved"}`)}}
	s.must(os.WriteFile(filepath.Join(s.parts.Box.ResultsDir(), "T1.review.json"), answer.Encode(), 0o600))
	s.Look(t.Context())
	if row := s.row("T1"); row.State != ledger.Review {
		t.Errorf("T1 is %s after a file of its overseer's; want review", row.State)
	}
	s.must(s.Submit(t.Context(), "T1.review", dispatch.Submission{Agent: "editor", Answer: []byte("approved")}, dispatch.By{Who: "uid 1000"}))
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
}

func TestAPersonDecidesAfterTheOverseer(t *testing.T) {
	s := newReview(t)
	s.judge = func(task envelope.Task, _ time.Time) dispatch.Verdict {
		v := dispatch.Verdict{Admit: true}
		if task.Agent == "analyst" {
			v.Approval = envelope.ApprovalPost
		}
		return v
	}
	s.cast("qa", says(ledger.Reply, message("qa", "T1.review", "orchestrator", "verified")))
	s.start()
	s.order("T1", "analyst")
	if row := s.row("T1"); row.State != ledger.Review {
		t.Fatalf("T1 is %s after its overseer has approved; want it in review by a person", row.State)
	}
	s.hidden("T1")
	s.restart()
	<-s.Ready()
	s.must(s.Approve(t.Context(), "T1", dispatch.Person{Names: []string{"anna"}}, ""))
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
}

func TestAReviewGoesOnAtTheNextStart(t *testing.T) {
	s := newReview(t)
	s.cast("qa", says(ledger.Reply, question("qa", "T1.review", "user", "is that so?")), says(ledger.Reply, message("qa", "T1.review", "orchestrator", "verified")))
	s.start()
	s.order("T1", "analyst")
	s.restart()
	<-s.Ready()
	s.must(s.Idle(t.Context()))
	if row := s.row("T1"); row.State != ledger.Review {
		t.Fatalf("T1 is %s after a start; want it still in review", row.State)
	}
	child := s.row("T1.review")
	s.end()
	s.aside(func(tx *ledger.Tx) error { // its overseer ends otherwise, and the daemon dies before it sees to T1
		change := ledger.Change{To: ledger.Done, Status: envelope.Failed, Result: envelope.Result{TaskID: "T1.review", Status: envelope.Failed}.Encode()}
		if _, err := tx.Move(child.Seq, ledger.Held, child.Attempt, change); err != nil {
			return err
		}
		return tx.MarkSettled(child.Seq)
	})
	s.start()
	<-s.Ready()
	s.await("T1", ledger.Done)
	s.wantEnd("T1", envelope.Failed, envelope.OversightExpired)
}

func TestAnOverseerIsHeardAcrossAStart(t *testing.T) {
	s := newReview(t)
	s.opts.Detach = true
	s.plays["qa"] = func(ctx context.Context, j dispatch.Job) dispatch.Outcome {
		<-ctx.Done()
		return dispatch.Outcome{Detached: true}
	}
	s.start()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(notice("orchestrator", "T1", "analyst", "look")))
	s.must(err)
	s.Look(t.Context())
	s.await("T1.review", ledger.Running)
	s.found = dispatch.Outcome{
		Exit:   runner.Exit{Started: time.Now(), Finished: time.Now()},
		Result: envelope.Result{TaskID: "T1.review", AgentID: "qa", Status: envelope.OK, Output: envelope.Output{Summary: "fine", Extra: []byte(`{"decision":"approved"}`)}},
	}
	s.restart()
	<-s.Ready()
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
}
