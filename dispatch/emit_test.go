package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
	"mailboxd/mailbox"
)

// CAP-19, CLOWL-33.
func TestAnAgentGoesOnWithTheAnswerOfTheOneItAsked(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "analyst", "count them")), answers("all counted"))
	s.cast("analyst", answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1.1", envelope.OK, "")
	s.wantEnd("T1", envelope.OK, "")
	s.wantResult("T1", "all counted")
	if child := s.row("T1.1"); child.Parent != s.row("T1").Seq || child.Requester != "pm" {
		t.Errorf("T1.1 = %+v; want a child of T1 that pm asked for", child)
	}
	runs := s.runs("pm")
	if len(runs) != 2 {
		t.Fatalf("pm ran %d times; want 2", len(runs))
	}
	got, want := conversationLines(runs[1]), []string{"task.delegated pm>analyst count them", "task.completed analyst>pm 42, revision 1"}
	if !slices.Equal(got, want) {
		t.Errorf("pm goes on with %q; want %q", got, want)
	}
	if conversation := conversationLines(s.runs("analyst")[0]); len(conversation) > 0 {
		t.Errorf("analyst begins with %q; want nothing but its request", conversation)
	}
}

// CAP-29.
func TestAnAgentGoesOnWithTheReplyOfAPerson(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Reply, question("pm", "T1", "user", "which region?")), answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.wantHeld("T1", task.Reply)
	if got := s.letters("user"); len(got) != 1 || !strings.Contains(got[0], "which region?") {
		t.Errorf("user finds %q; want the question", got)
	}
	s.line(message("user", "T1", "pm", "the north"))
	s.wantEnd("T1", envelope.OK, "")
	got, want := conversationLines(s.runs("pm")[1]), []string{"info pm>user which region?", "info user>pm the north"}
	if !slices.Equal(got, want) {
		t.Errorf("pm goes on with %q; want %q", got, want)
	}
}

// A reply that comes while the agent still speaks is one all the same.
func TestAReplyThatCameBeforeTheTaskWaitsForItIsNotMissed(t *testing.T) {
	s := newStage(t)
	s.cast("pm", func(j task.Job) task.Outcome {
		_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(message("user", "T1", "pm", "the north")))
		s.must(err)
		s.Look(s.t.Context())
		return says(task.Reply, question("pm", "T1", "user", "which region?"))(j)
	}, answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
}

// CAP-29.
func TestAQuestionToTheOneAboveIsAnsweredByItsRun(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "analyst", "count them")),
		says(task.Reply, message("pm", "T1.1", "analyst", "yes, all")), answers("all counted"))
	s.cast("analyst", says(task.Reply, question("analyst", "T1.1", "pm", "all of them?")), answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	got, want := conversationLines(s.runs("analyst")[1]), []string{"info analyst>pm all of them?", "info pm>analyst yes, all"}
	if !slices.Equal(got, want) {
		t.Errorf("analyst goes on with %q; want %q", got, want)
	}
	if len(s.runs("pm")) != 3 {
		t.Errorf("pm ran %d times; want 3", len(s.runs("pm")))
	}
}

// CAP-19.
func TestWorkIsHandedOnlyToWhomItMayBe(t *testing.T) {
	s := newStage(t)
	s.allowed["pm"] = []string{"analyst"}
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "qa", "check it")), answers("then not"))
	s.cast("qa", answers("never"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1.1", envelope.Rejected, envelope.DelegationDenied)
	s.wantEnd("T1", envelope.OK, "")
	if len(s.runs("qa")) != 0 {
		t.Error("qa ran; want it never asked")
	}
	if got := conversationLines(s.runs("pm")[1]); !strings.Contains(strings.Join(got, "\n"), "task.failed qa>pm target_agent: pm may not hand work to qa") &&
		!strings.Contains(strings.Join(got, "\n"), "may not hand work to qa") {
		t.Errorf("pm goes on with %q; want the refusal of its delegation", got)
	}
}

func TestNobodyReplyingInTimeIsATimeout(t *testing.T) {
	s := newStage(t)
	s.spoken.ReplyTimeout = time.Millisecond
	s.cast("pm", says(task.Reply, question("pm", "T1", "user", "which region?")))
	s.start()
	s.order("T1", "pm")
	s.await("T1", task.Done)
	s.wantEnd("T1", envelope.Failed, envelope.Timeout)
}

func TestAnAgentThatOnlyEverSpeaksComesToAnEnd(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	s := newStage(t)
	s.allowed["pm"] = []string{}
	s.cast("pm", func(j task.Job) task.Outcome {
		return says(task.Children, notice("pm", fmt.Sprintf("T1.%d", j.Attempt), "qa", "check it"))(j)
	})
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.Failed, envelope.PolicyViolation)
	s.wantResult("T1", "without an answer")
}
