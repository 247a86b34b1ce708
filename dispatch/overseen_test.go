package dispatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// append adds a line to the task files, and has it taken in, whoever is busy.
func (s *stage) append(text string) {
	s.t.Helper()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(text))
	s.must(err)
	s.Look(s.t.Context())
}

// Somebody else may wake an overseer that waits for the agent, so that it speaks
// when the agent has answered anew, and does not know of that (CAP-24).
func TestAnOverseerDecidesAboutNothingThatItHasNotSeen(t *testing.T) {
	s := newReview(t)
	var analyst, qa atomic.Int32
	woken := make(chan struct{})
	timed := func(o dispatch.Outcome) dispatch.Outcome {
		o.Exit.Started, o.Exit.Finished = time.Now(), time.Now()
		return o
	}
	s.plays["analyst"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		if analyst.Add(1) == 1 {
			return timed(answer(j, "42"))
		}
		<-woken
		return timed(answer(j, "forged"))
	}
	s.plays["qa"] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		switch qa.Add(1) {
		case 1:
			return timed(says(ledger.Reply, inquiry("qa", "T1.review", "analyst", "really?"))(j))
		case 2:
			close(woken)
			s.await("T1", ledger.Review)
			return timed(says(ledger.Reply, message("qa", "T1.review", "orchestrator", "verified"))(j))
		}
		if got := strings.Join(heard(j), "\n"); !strings.Contains(got, "forged") {
			t.Errorf("qa is asked again with %q; want what it has not seen", got)
		}
		return timed(says(ledger.Reply, refusal("qa", "T1.review", "analyst", "made up"))(j))
	}
	s.start()
	s.append(notice("orchestrator", "T1", "analyst", "look"))
	s.await("T1", ledger.Running)
	s.until("analyst runs again", func() bool { return analyst.Load() == 2 })
	s.append(message("user", "T1.review", "qa", "analyst says that it is right"))
	s.await("T1", ledger.Done)
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.Failed, envelope.OversightRejected)
	if got := s.result("T1"); strings.Contains(got, "forged") {
		t.Errorf("result of T1 = %s; want nothing that qa has not seen", got)
	}
	if got := strings.Join(s.letters("orchestrator"), "\n"); strings.Contains(got, "verified") {
		t.Errorf("orchestrator finds %s; want no word about what qa has not seen", got)
	}
}

// The operator may change who oversees an agent at any time, also while it ends.
func TestAnAnswerIsForWhoOverseesItsAgentWhenTheRunEnds(t *testing.T) {
	s := newReview(t)
	var asked atomic.Int32
	s.spoken.Overseer = func(agent string) string {
		if agent == "analyst" && asked.Add(1) > 1 {
			return "qa"
		}
		return ""
	}
	s.start()
	s.order("T1", "analyst")
	s.wantEnd("T1", envelope.OK, "")
}
