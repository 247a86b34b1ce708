package task_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CLUTCH-46: what counts against an agent when agents are chosen.
func TestOnlyFaultsOfTheAgentCountAgainstIt(t *testing.T) {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name          string
		run           task.Run
		kind          envelope.Kind
		fault, counts bool
	}{
		{"a good run", task.Run{Started: began}, "", false, true},
		{"an exit code", task.Run{Started: began, ExitCode: 3}, "", true, true},
		{"a signal", task.Run{Started: began, Signal: "SIGSEGV (11)"}, envelope.AgentCrashed, true, true},
		{"a timeout", task.Run{Started: began, Cause: task.CauseTimeout, ExitCode: -1}, envelope.Timeout, true, true},
		{"an unreadable answer", task.Run{Started: began}, envelope.OutputInvalid, true, true},
		{"a budget that ran out", task.Run{Started: began}, envelope.BudgetExceeded, false, true},
		{"a person who cancelled", task.Run{Started: began, Cause: task.CauseInterrupted, ExitCode: -1}, envelope.Cancelled, false, true},
		{"a lost keeper", task.Run{Started: began, Cause: task.CauseLost, ExitCode: -1}, envelope.RunLost, false, true},
		{"a login", task.Run{Started: began, Cause: task.CausePutBack, ExitCode: 1}, "", false, false},
		{"no start", task.Run{}, envelope.SpawnFailed, true, false},
	} {
		if got := row.run.Fault(row.kind); got != row.fault {
			t.Errorf("%s: fault = %t; want %t", row.name, got, row.fault)
		}
		if got := row.run.Counts(); got != row.counts {
			t.Errorf("%s: counts = %t; want %t", row.name, got, row.counts)
		}
	}
}
