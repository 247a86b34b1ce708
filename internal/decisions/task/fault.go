package task

import (
	"slices"

	"mailboxd/envelope"
)

// agentFaults are the failures of a task that its agent caused.
var agentFaults = []envelope.Kind{
	envelope.Timeout, envelope.IdleTimeout, envelope.ExitTimeout, envelope.OutputTooLarge, envelope.OutputInvalid,
	envelope.ContractViolation, envelope.IdentityMismatch, envelope.AgentError, envelope.AgentCrashed, envelope.SpawnFailed,
	envelope.AgentProtocol,
}

// Fault reports whether a run that has ended failed by the fault of its agent. Kind is the
// failure of its task; "" if the task goes on. A run that does not count, and one that the
// daemon or a person ended, is no fault.
func (r Run) Fault(kind envelope.Kind) bool {
	switch r.Cause {
	case CauseTimeout, CauseIdleTimeout, CauseExitTimeout, CauseOutputTooLarge:
		return true
	case "":
		return r.ExitCode != 0 || r.Signal != "" || slices.Contains(agentFaults, kind)
	}
	return false
}

// Counts reports whether a run that has ended says something about its agent.
func (r Run) Counts() bool {
	return !r.Started.IsZero() && r.Cause != CausePutBack && r.Cause != CauseSandbox
}
