package policy_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

// The contract's own example, its dates moved to today: its deadline lies before
// its change window (F3).
func TestTheExampleOfTheContractNeedsItsApproverAndAnExemptType(t *testing.T) {
	now := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	asks := contractExample(t, now)
	monitor := &policy.Subject{Manifest: contractManifest(t), MaxSensitivity: envelope.Internal, Metered: true}
	exempt := policy.Rules{WindowExempt: []string{"execute_monitor", "advisory_*"}}

	v := policy.Decide(asks, monitor, exempt, now)
	if !v.Admit || !slices.Equal(v.Hold, []task.Reason{task.Approval}) || !v.Until.Equal(asks.Deadline) {
		t.Errorf("Decide(example) = %+v; want it held for approval until its deadline", v)
	}
	if v.Approval != envelope.ApprovalPre || v.Approver != "sre-oncall@example.com" {
		t.Errorf("Decide(example) = approval %q by %q; want pre by its human_approver", v.Approval, v.Approver)
	}
	if *v.Budget.Tokens != 3000 || *v.Budget.USDCents != 300 || len(v.Tools) != 5 || !v.Deadline.Equal(asks.Deadline) {
		t.Errorf("Decide(example) = terms %+v; want what it asks for", v.Terms)
	}
	if v := policy.Decide(asks, monitor, policy.Rules{}, now); v.Admit || v.Findings.Kind() != envelope.ChangeWindowMissed {
		t.Errorf("Decide(example, no exempt types) = %+v; want change_window_missed", v)
	}
	if v := policy.Decide(asks, monitor, exempt, asks.Deadline); v.Admit || v.Findings.Kind() != envelope.DeadlineExceeded {
		t.Errorf("Decide(example, at its deadline) = %+v; want deadline_exceeded, approved or not", v)
	}
}

// contractExample is the example with its dates moved to a day and the next.
func contractExample(t testing.TB, day time.Time) envelope.Task {
	t.Helper()
	text := strings.NewReplacer(
		"2026-03-09T", day.Format("2006-01-02T"), "2026-03-10T", day.Add(24*time.Hour).Format("2006-01-02T"),
	).Replace(string(shared(t, "request-task-2026-03-09-0001.json")))
	asks, findings := envelope.DecodeTask([]byte(text), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	return asks
}

func contractManifest(t testing.TB) *envelope.Manifest {
	t.Helper()
	m, findings := envelope.DecodeManifest(shared(t, "manifest-openclaw.monitor.json"))
	if findings.Refused() {
		t.Fatal(findings)
	}
	return &m
}

// shared reads one of the contract's own documents, which package envelope keeps.
func shared(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../envelope/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
