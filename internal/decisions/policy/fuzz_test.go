package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

// For any request and manifest, Decide gives the same verdict twice, and admits no task with a
// larger limit than the manifest, the operator and the request allow.
func FuzzDecide(f *testing.F) {
	card := shared(f, "manifest-openclaw.monitor.json")
	f.Add(shared(f, "request-task-2026-03-09-0001.json"), card, int64(0), uint16(0))
	f.Add(shared(f, "request-task-2026-03-09-0001.json"), card, int64(11*time.Hour), uint16(0xffff))
	f.Add(shared(f, "upstream-requests.jsonl"), shared(f, "manifest-template.json"), int64(-1), uint16(0x0f))
	f.Add([]byte(`{"schema_version":"1.0","task_id":"t","requester_id":"me","target_agent":"a","target_role":"r","task_type":"w","description":"",`+
		`"input":{},"budget_limit":{"tokens":9223372036854775807,"usd_cents":0},"allowed_tools":["x","x"],"approval_required":"post",`+
		`"policy_context":{"change_window":["0001-01-01T00:00:00Z/PT1S","9999-12-31T23:59:59Z/P9999D"]}}`),
		[]byte(`{"schema_version":"1.0","agent_id":"a","budget_class":"low","available_tools":["x"],"max_context_size":0}`), int64(1<<62), uint16(1))
	f.Fuzz(func(t *testing.T, line, card []byte, after int64, choices uint16) {
		m, findings := envelope.DecodeManifest(card)
		if findings.Refused() {
			return
		}
		subject, rules := operator(&m, choices)
		for _, piece := range envelope.ReadLine(line, envelope.Strict) {
			if piece.Findings.Refused() {
				continue
			}
			now := noon.Add(time.Duration(after))
			v := policy.Decide(piece.Task, subject, rules, now)
			if again := policy.Decide(piece.Task, subject, rules, now); !cmp.Equal(v, again) {
				t.Fatalf("Decide = %+v, then %+v", v, again)
			}
			if v.Admit == v.Findings.Refused() {
				t.Fatalf("Decide = admit %v with %v", v.Admit, v.Findings)
			}
			if v.Admit {
				checkTerms(t, piece.Task, subject, rules, v, now)
			}
		}
	})
}

// operator makes the operator's settings from some bits.
func operator(m *envelope.Manifest, choices uint16) (*policy.Subject, policy.Rules) {
	chose := func(bit int) bool { return choices>>bit&1 == 1 }
	s := &policy.Subject{Manifest: m, Metered: chose(0), AllowUnmetered: chose(1), KillAtWindowEnd: chose(2), MaxSensitivity: envelope.Internal}
	class := policy.Class{Name: m.BudgetClass, Budget: envelope.Budget{Tokens: amount(int64(choices)), USDCents: amount(7)}, Wall: time.Minute}
	rules := policy.Rules{Classes: []policy.Class{class}}
	if chose(3) {
		s.Tools = []string{"x", "http"}
	}
	if chose(4) {
		rules.WindowExempt = []string{"*"}
	}
	if chose(5) {
		rules.DayBudgets = []policy.DayBudget{{Agent: "*", Limit: class.Budget}}
	}
	if chose(6) {
		rules.Trust = []policy.Trust{{From: "*", To: "internal"}}
	}
	return s, rules
}

func checkTerms(t *testing.T, asked envelope.Task, s *policy.Subject, rules policy.Rules, v task.Verdict, now time.Time) {
	t.Helper()
	within := func(got, most *int64) bool { return most == nil || got != nil && *got <= *most }
	class, named := rules.Class(s.Manifest.BudgetClass)
	for _, most := range []envelope.Budget{asked.Budget, class.Budget} {
		if !within(v.Budget.Tokens, most.Tokens) || !within(v.Budget.USDCents, most.USDCents) {
			t.Fatalf("Decide = budget %+v; want at most %+v", v.Budget, most)
		}
	}
	if named && (v.Timeout <= 0 || v.Timeout > class.Wall) {
		t.Fatalf("Decide = timeout %v; want at most %v", v.Timeout, class.Wall)
	}
	for _, most := range [][]string{asked.AllowedTools, s.Manifest.AvailableTools, s.Tools} {
		if most != nil && (v.Tools == nil || slices.ContainsFunc(v.Tools, func(tool string) bool { return !slices.Contains(most, tool) })) {
			t.Fatalf("Decide = tools %q; want none but %q", v.Tools, most)
		}
	}
	if !asked.Deadline.IsZero() && (v.Deadline.IsZero() || v.Deadline.After(asked.Deadline) || !now.Before(v.Deadline)) {
		t.Fatalf("Decide at %v = deadline %v; want at most %v", now, v.Deadline, asked.Deadline)
	}
	if s.Manifest.RequiresApproval(asked.Type) && (len(v.Hold) == 0 || v.Approval == "" || v.Approval == envelope.ApprovalPost) {
		t.Fatalf("Decide = approval %q, held for %v; want a person asked before", v.Approval, v.Hold)
	}
	if len(v.Hold) == 0 && !v.Until.IsZero() {
		t.Fatalf("Decide = until %v without a hold", v.Until)
	}
}
