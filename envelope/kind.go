package envelope

import "slices"

// A Kind is the machine-readable cause in a result's error.kind. The set is the canonical error
// table; each dialect has a code for each kind.
type Kind string

// The kinds of error. The comment names the party that can fix it.
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
	ApprovalDenied     Kind = "approval_denied"           // approver: denied it
	ApprovalExpired    Kind = "approval_expired"          // approver: did not decide in time
	PolicyViolation    Kind = "policy_violation"          // operator: the rules forbid it
	BudgetExceeded     Kind = "budget_exceeded"           // the budget of the task or of the operator is spent
	DelegationCycle    Kind = "delegation_cycle"          // agent: asked for a task that it is part of
	DuplicateConflict  Kind = "duplicate_conflict"        // sender: the id belongs to a task with other content
	Cancelled          Kind = "cancelled"                 // a cancellation was requested
	Timeout            Kind = "timeout"                   // agent: ran too long
	IdleTimeout        Kind = "idle_timeout"              // agent: printed nothing for too long
	ExitTimeout        Kind = "exit_timeout"              // agent: answered and did not exit
	OutputTooLarge     Kind = "output_too_large"          // agent: printed too much
	OutOfMemory        Kind = "out_of_memory"             // agent: used more memory than its sandbox allows
	OutputInvalid      Kind = "agent_output_invalid"      // agent: no readable answer
	ContractViolation  Kind = "output_contract_violation" // agent: a promised field is missing
	IdentityMismatch   Kind = "agent_identity_mismatch"   // agent: answered for another task
	AgentError         Kind = "agent_error"               // agent: reported a failure without its cause
	AgentCrashed       Kind = "agent_crashed"             // agent: bad exit or a signal
	SpawnFailed        Kind = "agent_spawn_failed"        // operator: the command cannot be started
	SandboxUnavailable Kind = "sandbox_unavailable"       // operator: the machine cannot make the agent's sandbox
	RunLost            Kind = "run_lost"                  // the run is dead and its answer unknown
	InternalError      Kind = "internal"                  // mailboxd
	AgentProtocol      Kind = "agent_protocol"            // agent: doesn't speak its protocol
	AgentUnsuitable    Kind = "agent_unsuitable"          // operator: the agent isn't in the mode in which it asks
	SessionUnavailable Kind = "session_unavailable"       // agent: can't continue the session
	ToolViolation      Kind = "tool_violation"            // agent: used a tool without asking, and no rule allows it
	Unauthorized       Kind = "unauthorized"              // sender: does not prove its identity
	DelegationDenied   Kind = "delegation_denied"         // agent: may not hand work to that agent
	NoCapableAgent     Kind = "no_capable_agent"          // operator: no agent can take it
	Capacity           Kind = "capacity"                  // sender: asks for too much at once
	ValidationFailed   Kind = "validation_failed"         // sender: the message is well-formed, and its request makes no sense
	ContextIntegrity   Kind = "context_integrity"         // sender: a file does not match its hash
	DependencyFailed   Kind = "dependency_failed"         // a task that it depends on did not succeed
	OversightExpired   Kind = "oversight_expired"         // overseer: did not decide in time
	OversightRejected  Kind = "oversight_rejected"        // overseer: refused it
)

// A Status is the outcome of a task in its result (AINL-63).
type Status string

// The statuses that mailboxd writes. An agent's own word is kept, with review.
const (
	OK       Status = "ok"
	Failed   Status = "error"     // a run was started
	Partial  Status = "partial"   // a run was started, and its agent reports a partial success
	Stopped  Status = "cancelled" // a cancellation was requested
	Rejected Status = "rejected"  // no run was started
)

// kinds are all kinds that mailboxd writes.
var kinds = []Kind{
	InvalidJSON, InvalidEnvelope, UnsupportedVersion, SecurityViolation, UnknownAgent, RoleMismatch,
	UnsupportedTask, ContextTooLarge, ContextUnavailable, DeadlineExceeded, ChangeWindowMissed, ApprovalDenied,
	ApprovalExpired, PolicyViolation, BudgetExceeded, DelegationCycle, DuplicateConflict, Cancelled,
	Timeout, IdleTimeout, ExitTimeout, OutputTooLarge, OutOfMemory, OutputInvalid,
	ContractViolation, IdentityMismatch, AgentError, AgentCrashed, SpawnFailed, SandboxUnavailable,
	AgentProtocol, AgentUnsuitable, SessionUnavailable, RunLost, InternalError, Unauthorized, DelegationDenied, NoCapableAgent, Capacity,
	ValidationFailed, ContextIntegrity, DependencyFailed, OversightExpired, OversightRejected,
}

// Known reports whether mailboxd writes the kind. Other kinds are words of agents.
func (k Kind) Known() bool { return slices.Contains(kinds, k) }

// IsLineError reports whether an error kind concerns the line itself, not the work that the
// line requests.
func (k Kind) IsLineError() bool {
	switch k {
	case InvalidJSON, InvalidEnvelope, UnsupportedVersion, SecurityViolation:
		return true
	}
	return false
}
