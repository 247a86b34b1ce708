package envelope

// A Control is one rule of the contract that mailboxd enforces. Its name is the field with the
// limit, and the key of its mode in the configuration.
type Control string

// The controls, in the order of the fields they make binding.
const (
	ControlRole           Control = "role"            // target_role is one of the manifest's (AINL-13)
	ControlTaskType       Control = "task_type"       // the agent takes the type (AINL-35)
	ControlContextSize    Control = "context_size"    // the input fits max_context_size (AINL-20)
	ControlRefs           Control = "refs"            // the named files are readable (AINL-40)
	ControlOutputContract Control = "output_contract" // the answer has the requested form (AINL-41 to AINL-43)
	ControlSensitivity    Control = "sensitivity"     // the agent may see content of this sensitivity (AINL-44)
	ControlLocality       Control = "locality"        // confidential content stays on this machine (AINL-19)
	ControlDeadline       Control = "deadline"        // the task ends in time, or is ended (AINL-45)
	ControlBudget         Control = "budget"          // the task spends no more (AINL-18, AINL-46)
	ControlTools          Control = "tools"           // the agent uses no other tool (AINL-14, AINL-47)
	ControlExecutionMode  Control = "execution_mode"  // an advisory agent executes nothing (AINL-15)
	ControlApproval       Control = "approval"        // a person approves (AINL-17, AINL-48, AINL-49)
	ControlEnvironment    Control = "environment"     // the agent works in that environment (AINL-52)
	ControlChangeWindow   Control = "change_window"   // the run starts inside the window (AINL-58)
	ControlTrustDomain    Control = "trust_domain"    // the requester may ask the agent (AINL-60)
	ControlNearMisses     Control = "near_misses"     // no field is a misspelt control, and no control is null
	ControlLineage        Control = "lineage"         // chains of agents that ask agents have a limit (AINL-01)
)

// The controls of a sandbox. They have no field in the contract and no key below policy.
const (
	ControlFilesystem Control = "filesystem" // the agent reaches only the paths of its sandbox
	ControlNetwork    Control = "network"    // the agent reaches only the network of its sandbox
	ControlMCPTools   Control = "mcp_tools"  // the agent reaches only the allowed tools of MCP servers, and never their credentials
	ControlMailbox    Control = "mailbox"    // the agent reaches no results, task files, ledger or sockets
)

// Controls lists every Control, in the order of the contract's fields.
func Controls() []Control {
	return []Control{
		ControlRole, ControlTaskType, ControlContextSize, ControlRefs, ControlOutputContract, ControlSensitivity,
		ControlLocality, ControlDeadline, ControlBudget, ControlTools, ControlExecutionMode, ControlApproval,
		ControlEnvironment, ControlChangeWindow, ControlTrustDomain, ControlNearMisses, ControlLineage,
	}
}

// A Mode is how strictly a control is enforced. The zero value is Enforce.
type Mode int

// The modes of every control.
const (
	Enforce Mode = iota // refuse, hold or end the task
	Warn                // accept, with a warning
	Off                 // do not check
)

// A Level is the component that enforced a control for a run, the strongest first. It tells a
// reader of the result how far to trust the control.
type Level string

// The levels.
const (
	LevelKernel            Level = "kernel"             // the operating system
	LevelPartial           Level = "kernel-partial"     // the operating system, except for the listed holes of the weaker sandbox
	LevelDaemon            Level = "daemon"             // mailboxd: the agent cannot avoid it
	LevelDaemonUnsandboxed Level = "daemon-unsandboxed" // mailboxd, but the agent runs as its user and can reach its files
	LevelAgentFlag         Level = "agent-flag"         // the agent's own program, by a flag that it has for this
	LevelObserved          Level = "observed"           // mailboxd, by the report of the agent, which may be incomplete
	LevelAdvisory          Level = "advisory"           // the agent was told the limit, and nothing enforces it
)

// Levels has the Level of each control of a task. It is output.enforcement of the result.
type Levels map[Control]Level
