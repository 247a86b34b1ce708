package policy_test

import (
	"slices"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/policy"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

func task() envelope.Task {
	return envelope.Task{ID: "t1", Agent: "a", Role: "executor", Type: "work"}
}

func TestAnUnknownAgentIsRefusedByName(t *testing.T) {
	v := policy.Decide(task(), nil, policy.Rules{}, noon)
	if v.Admit || v.Findings.Kind() != envelope.UnknownAgent || v.Findings[0].Field != "target_agent" {
		t.Errorf("Decide(unknown agent) = %+v; want unknown_agent at target_agent", v)
	}
}

func TestARoleTheManifestDoesNotHaveIsRefused(t *testing.T) {
	advisor := &policy.Subject{Manifest: &envelope.Manifest{RoleTypes: []string{"advisor"}}}
	if v := policy.Decide(task(), advisor, policy.Rules{}, noon); v.Admit || v.Findings.Kind() != envelope.RoleMismatch {
		t.Errorf("Decide(executor for an advisor) = %+v; want role_mismatch", v)
	}
	anybody := &policy.Subject{Manifest: &envelope.Manifest{}}
	for _, s := range []*policy.Subject{anybody, {}} {
		if v := policy.Decide(task(), s, policy.Rules{}, noon); !v.Admit {
			t.Errorf("Decide(no roles listed) = %+v; want it admitted", v)
		}
	}
}

func TestADeadlineThatIsPastIsRefused(t *testing.T) {
	late := task()
	late.Deadline = noon
	if v := policy.Decide(late, &policy.Subject{}, policy.Rules{}, noon); v.Admit || v.Findings.Kind() != envelope.DeadlineExceeded {
		t.Errorf("Decide(at its deadline) = %+v; want deadline_exceeded", v)
	}
	if v := policy.Decide(late, &policy.Subject{}, policy.Rules{}, noon.Add(-time.Second)); !v.Admit || !v.Deadline.Equal(noon) {
		t.Errorf("Decide(before its deadline) = %+v; want it admitted until the deadline", v)
	}
}

func TestToolsAreTheOnesBothSidesAllow(t *testing.T) {
	some := &policy.Subject{Manifest: &envelope.Manifest{AvailableTools: []string{"http", "queue"}}}
	for _, c := range []struct {
		name          string
		agent         *policy.Subject
		asked, want   []string
		wantsAWarning bool
	}{
		{"both", some, []string{"queue", "cache"}, []string{"queue"}, true},
		{"none asked for", some, []string{}, []string{}, false},
		{"not given", some, nil, []string{"http", "queue"}, false},
		{"no manifest", &policy.Subject{}, []string{"x"}, []string{"x"}, false},
	} {
		asks := task()
		asks.AllowedTools = c.asked
		v := policy.Decide(asks, c.agent, policy.Rules{}, noon)
		if !v.Admit || !slices.Equal(v.Tools, c.want) || (len(v.Findings) > 0) != c.wantsAWarning {
			t.Errorf("%s: Decide = %+v; want tools %q", c.name, v, c.want)
		}
	}
}

func TestWhatNeedsAPersonIsHeldUntilTheDeadline(t *testing.T) {
	asks := task()
	asks.Approval, asks.Deadline = envelope.ApprovalPre, noon.Add(time.Hour)
	v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon)
	if !v.Admit || !slices.Equal(v.Hold, []ledger.Reason{ledger.Approval}) || !v.Until.Equal(asks.Deadline) {
		t.Errorf("Decide(pre) = %+v; want it held for approval until the deadline", v)
	}
	standing := &policy.Subject{Manifest: &envelope.Manifest{ApprovalByType: map[string]bool{"work": true}}}
	if v := policy.Decide(task(), standing, policy.Rules{}, noon); !slices.Equal(v.Hold, []ledger.Reason{ledger.Approval}) {
		t.Errorf("Decide(manifest asks) = %+v; want it held for approval", v)
	}
	if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{Approval: envelope.Warn}, noon); len(v.Hold) > 0 || len(v.Findings.Warnings()) != 1 {
		t.Errorf("Decide(warn) = %+v; want it admitted with a warning", v)
	}
	if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{Approval: envelope.Off}, noon); len(v.Hold) > 0 || len(v.Findings) > 0 {
		t.Errorf("Decide(off) = %+v; want it admitted", v)
	}
}

func TestAChangeWindowIsWaitedForOrMissed(t *testing.T) {
	at := func(start, end time.Duration) []envelope.Window {
		return []envelope.Window{{Start: noon.Add(start), End: noon.Add(end)}}
	}
	for _, c := range []struct {
		name     string
		windows  []envelope.Window
		deadline time.Time
		kind     envelope.Kind
		hold     bool
	}{
		{"inside", at(-time.Hour, time.Hour), time.Time{}, "", false},
		{"at its start", at(0, time.Hour), time.Time{}, "", false},
		{"at its end", at(-time.Hour, 0), time.Time{}, envelope.ChangeWindowMissed, false},
		{"before", at(time.Hour, 2*time.Hour), time.Time{}, "", true},
		{"after the deadline", at(time.Hour, 2*time.Hour), noon.Add(time.Hour), envelope.ChangeWindowMissed, false},
		{"second of two", append(at(-2*time.Hour, -time.Hour), at(time.Hour, 2*time.Hour)...), time.Time{}, "", true},
	} {
		asks := task()
		asks.ChangeWindows, asks.Deadline = c.windows, c.deadline
		v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon)
		if v.Findings.Kind() != c.kind || (len(v.Hold) > 0) != c.hold {
			t.Errorf("%s: Decide = %+v; want kind %q, held %v", c.name, v, c.kind, c.hold)
		}
		if c.hold && !v.Until.Equal(noon.Add(time.Hour)) {
			t.Errorf("%s: held until %s; want the window's start", c.name, v.Until)
		}
		if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{WindowExempt: []string{"wo*"}}, noon); len(v.Hold) > 0 || !v.Admit {
			t.Errorf("%s, exempt: Decide = %+v; want it admitted", c.name, v)
		}
	}
}

func TestABudgetNeedsAnAgentThatCanBeMetered(t *testing.T) {
	cents := int64(100)
	asks := task()
	asks.Budget = envelope.Budget{USDCents: &cents}
	if v := policy.Decide(asks, &policy.Subject{}, policy.Rules{}, noon); v.Admit || v.Findings[0].Field != "budget_limit" {
		t.Errorf("Decide(unmetered) = %+v; want it refused at budget_limit", v)
	}
	if v := policy.Decide(asks, &policy.Subject{Metered: true}, policy.Rules{}, noon); !v.Admit {
		t.Errorf("Decide(metered) = %+v; want it admitted", v)
	}
}

func TestTheZeroVerdictRefuses(t *testing.T) {
	if (policy.Verdict{}).Admit {
		t.Error("a zero Verdict admits")
	}
}

// AINL-17, AINL-48, AINL-49
func TestTheStricterApprovalWinsAndNamesItsApprover(t *testing.T) {
	standing := &policy.Subject{Manifest: &envelope.Manifest{ApprovalDefault: true}}
	const none, pre, post, both = envelope.ApprovalNone, envelope.ApprovalPre, envelope.ApprovalPost, envelope.ApprovalBoth
	for _, c := range []struct {
		asked  envelope.Approval
		agent  *policy.Subject
		mode   envelope.Mode
		want   envelope.Approval
		held   bool
		warned bool
	}{
		{none, &policy.Subject{}, envelope.Enforce, none, false, false},
		{post, &policy.Subject{}, envelope.Enforce, post, false, false},
		{both, &policy.Subject{}, envelope.Enforce, both, true, false},
		{none, standing, envelope.Enforce, pre, true, false},
		{post, standing, envelope.Enforce, both, true, false},
		{both, standing, envelope.Enforce, both, true, false},
		{post, &policy.Subject{}, envelope.Warn, none, false, true},
		{both, standing, envelope.Warn, none, false, true},
		{both, standing, envelope.Off, none, false, false},
	} {
		asks := task()
		asks.Approval, asks.HumanApprover = c.asked, "ada"
		v := policy.Decide(asks, c.agent, policy.Rules{Approval: c.mode}, noon)
		named := v.Approver == "ada"
		if !v.Admit || v.Approval != c.want || (len(v.Hold) > 0) != c.held || named != (c.want != none) || (len(v.Findings) > 0) != c.warned {
			t.Errorf("Decide(%q, mode %d) = %+v; want %q, held %v, warned %v", c.asked, c.mode, v, c.want, c.held, c.warned)
		}
	}
}
