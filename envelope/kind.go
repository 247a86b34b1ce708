package envelope

import "slices"

// A Kind is the machine-readable cause in a result's error.kind. The set is
// that of the canonical error table, and each dialect has a code for each.
type Kind string

// The kinds of error. The comment says who can fix it.
const (
	InvalidJSON        Kind = "invalid_json"              // sender: the line is not JSON
	InvalidEnvelope    Kind = "invalid_envelope"          // sender: a field is missing or wrong
	UnsupportedVersion Kind = "unsupported_version"       // sender: schema_version is not 1.x
	SecurityViolation  Kind = "security_violation"        // sender: a path leaves its root
	UnknownAgent       Kind = "unknown_agent"             // operator: no such agent is configured
	RoleMismatch       Kind = "role_mismatch"             // sender: the agent does not have the role
	UnsupportedTask    Kind = "unsupported_task_type"     // sender: the agent does not take the type
	ContextTooLarge    Kind = "context_too_large"         // sender: the input is more than the agent can hold
	ContextUnavailable Kind = "context_unavailable"       // sender: a file that the task names is not there
	DeadlineExceeded   Kind = "deadline_exceeded"         // sender: too late
	ChangeWindowMissed Kind = "change_window_missed"      // sender: the window is over or unreachable
	ApprovalDenied     Kind = "approval_denied"           // approver said no
	ApprovalExpired    Kind = "approval_expired"          // approver said nothing in time
	PolicyViolation    Kind = "policy_violation"          // operator's rules say no
	BudgetExceeded     Kind = "budget_exceeded"           // over the task's or operator's budget
	DelegationCycle    Kind = "delegation_cycle"          // agent: asked for what it is part of itself
	DuplicateConflict  Kind = "duplicate_conflict"        // sender: the id is taken by another content
	Cancelled          Kind = "cancelled"                 // somebody asked for it to stop
	Timeout            Kind = "timeout"                   // agent: ran too long
	IdleTimeout        Kind = "idle_timeout"              // agent: printed nothing for too long
	ExitTimeout        Kind = "exit_timeout"              // agent: answered and did not exit
	OutputTooLarge     Kind = "output_too_large"          // agent: printed too much
	OutOfMemory        Kind = "out_of_memory"             // agent: used more memory than its sandbox allows
	OutputInvalid      Kind = "agent_output_invalid"      // agent: no readable answer
	ContractViolation  Kind = "output_contract_violation" // agent: a promised field is missing
	IdentityMismatch   Kind = "agent_identity_mismatch"   // agent: answered for another task
	AgentError         Kind = "agent_error"               // agent: says it failed, and not how
	AgentCrashed       Kind = "agent_crashed"             // agent: bad exit or a signal
	SpawnFailed        Kind = "agent_spawn_failed"        // operator: the command cannot be started
	SandboxUnavailable Kind = "sandbox_unavailable"       // operator: the machine cannot make the agent's sandbox
	RunLost            Kind = "run_lost"                  // the run is dead and nobody knows its answer
	InternalError      Kind = "internal"                  // us
	Unauthorized       Kind = "unauthorized"              // sender: does not prove to be who it says
	DelegationDenied   Kind = "delegation_denied"         // agent: may not hand work to that one
	NoCapableAgent     Kind = "no_capable_agent"          // operator: nobody takes it
	Capacity           Kind = "capacity"                  // sender: asks for too much at once
	ValidationFailed   Kind = "validation_failed"         // sender: the message is well-formed, and what it asks makes no sense
	ContextIntegrity   Kind = "context_integrity"         // sender: a file is not what its hash says
	DependencyFailed   Kind = "dependency_failed"         // what it needs did not come about
	OversightExpired   Kind = "oversight_expired"         // overseer said nothing in time
	OversightRejected  Kind = "oversight_rejected"        // overseer said no
)

// A Status is how a task ended, as it stands in its result (AINL-63).
type Status string

// The statuses we write. An agent's own word is kept verbatim, with review.
const (
	OK       Status = "ok"
	Failed   Status = "error"     // an agent ran, or was started
	Partial  Status = "partial"   // an agent ran and says so
	Stopped  Status = "cancelled" // somebody asked for it
	Rejected Status = "rejected"  // no agent ran
)

// kinds are all kinds that we write.
var kinds = []Kind{
	InvalidJSON, InvalidEnvelope, UnsupportedVersion, SecurityViolation, UnknownAgent, RoleMismatch,
	UnsupportedTask, ContextTooLarge, ContextUnavailable, DeadlineExceeded, ChangeWindowMissed, ApprovalDenied,
	ApprovalExpired, PolicyViolation, BudgetExceeded, DelegationCycle, DuplicateConflict, Cancelled,
	Timeout, IdleTimeout, ExitTimeout, OutputTooLarge, OutOfMemory, OutputInvalid,
	ContractViolation, IdentityMismatch, AgentError, AgentCrashed, SpawnFailed, SandboxUnavailable,
	RunLost, InternalError, Unauthorized, DelegationDenied, NoCapableAgent, Capacity,
	ValidationFailed, ContextIntegrity, DependencyFailed, OversightExpired, OversightRejected,
}

// Known reports whether a kind is one that we write, and no word of an agent.
func (k Kind) Known() bool { return slices.Contains(kinds, k) }

// IsLineError reports whether an error kind concerns the line itself, not the work that the
// line asks for.
func (k Kind) IsLineError() bool {
	switch k {
	case InvalidJSON, InvalidEnvelope, UnsupportedVersion, SecurityViolation:
		return true
	}
	return false
}
