package conversation_test

import (
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// CLOWL-09.
func TestTheAnswersOfSeveralAgentsAreOneResult(t *testing.T) {
	for name, c := range map[string]struct {
		members []envelope.Status
		want    envelope.Status
		summary string
	}{
		"all are ok":                {[]envelope.Status{envelope.OK, envelope.OK}, envelope.OK, "2 of 2 agents answered."},
		"one failed":                {[]envelope.Status{envelope.OK, envelope.Failed}, envelope.Partial, "1 of 2 agents answered."},
		"one is partial":            {[]envelope.Status{envelope.OK, envelope.Partial}, envelope.Partial, "2 of 2 agents answered."},
		"one alone, and it is so":   {[]envelope.Status{envelope.Partial}, envelope.Partial, "1 of 1 agents answered."},
		"none has an answer":        {[]envelope.Status{envelope.Failed, envelope.Stopped, envelope.Rejected}, envelope.Failed, "0 of 3 agents answered."},
		"there is no agent to wait": {nil, envelope.Failed, "0 of 0 agents answered."},
	} {
		var members []conversation.Member
		for _, status := range c.members {
			members = append(members, conversation.Member{Agent: "a", Result: envelope.Result{Status: status}})
		}
		r := conversation.Combine("t1", members)
		if r.Status != c.want || r.Output.Summary != c.summary || (r.Error.Kind == envelope.DependencyFailed) != (c.want == envelope.Failed) {
			t.Errorf("%s: Combine = %s, %q, %q; want %s, %q", name, r.Status, r.Output.Summary, r.Error.Kind, c.want, c.summary)
		}
	}
}

// A failure may quote content that no approver has approved.
func TestAFailureThatNobodyApprovedKeepsItsReasonAlone(t *testing.T) {
	answer := envelope.Result{
		Output:    envelope.Output{Summary: "secret", Extra: []byte(`{"secret":1}`)},
		Artifacts: []envelope.Ref{{}}, Extra: []byte(`{"secret":1}`), Error: envelope.Error{Message: "it failed"},
	}
	for status, kept := range map[envelope.Status]bool{
		envelope.OK: true, envelope.Partial: true, envelope.Failed: false, envelope.Stopped: false, envelope.Rejected: false,
	} {
		r := answer
		r.Status = status
		got := conversation.Unapproved(r)
		if has := got.Output.Summary == "secret" && len(got.Artifacts) > 0 && got.Extra != nil; has != kept {
			t.Errorf("%s: Unapproved = %+v; want the answer kept: %t", status, got, kept)
		}
		if !kept && (got.Output.Summary != "it failed" || got.Output.Extra != nil || got.Extra != nil || got.Artifacts != nil) {
			t.Errorf("%s: Unapproved = %+v; want the reason alone", status, got)
		}
		r.Error.Message = ""
		if got := conversation.Unapproved(r); !kept && !strings.Contains(got.Output.Summary, "withheld") {
			t.Errorf("%s: Unapproved = %q; want that the answer is withheld", status, got.Output.Summary)
		}
	}
}

// The decision of an overseer whose run was broken doesn't count.
func TestARunIsBrokenWhenItsAgentDidNotChooseItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		outcome task.Outcome
		want    bool
	}{
		"it answered":       {task.Outcome{Result: envelope.Result{Status: envelope.OK}}, false},
		"it failed by word": {task.Outcome{Result: envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: envelope.AgentError}}}, false},
		"an exit code":      {task.Outcome{Exit: task.Exit{Code: 1}}, true},
		"a signal":          {task.Outcome{Exit: task.Exit{Signal: "killed"}}, true},
		"a cause":           {task.Outcome{Exit: task.Exit{Cause: "deadline"}}, true},
		"a crash":           {task.Outcome{Result: envelope.Result{Error: envelope.Error{Kind: envelope.AgentCrashed}}}, true},
		"it was stopped":    {task.Outcome{Result: envelope.Result{Status: envelope.Stopped}}, true},
	} {
		if got := conversation.Broken(c.outcome); got != c.want {
			t.Errorf("%s: Broken = %t; want %t", name, got, c.want)
		}
	}
}

// A task that combines answers, or that follows another one, has no run: nothing may start it.
func TestATaskWithoutARunIsHeldUntilItsDeadline(t *testing.T) {
	deadline := time.Unix(9, 0)
	warned := envelope.Findings{{Field: "x", Message: "odd"}}
	asks := envelope.Task{Deadline: deadline}
	for reason, v := range map[task.Reason]task.Verdict{
		task.Children:    conversation.AdmitCombined(asks, warned),
		task.SameCommand: conversation.SameCommand(asks, warned),
	} {
		if !v.Admit || len(v.Hold) != 1 || v.Hold[0] != reason || !v.Until.Equal(deadline) || !v.Deadline.Equal(deadline) || len(v.Findings) != 1 {
			t.Errorf("the verdict is %+v; want it held for %s until its deadline, with the warning", v, reason)
		}
	}
}
