package envelope

// A Control is one rule of the contract that we hold. Its name is the field
// that it makes binding, and the key that steers it.
type Control string

// The controls, in the order of the fields they make binding.
const (
	ControlRole           Control = "role"            // target_role is one of the manifest's (AINL-13)
	ControlTaskType       Control = "task_type"       // the agent takes the type (AINL-35)
	ControlContextSize    Control = "context_size"    // the input fits max_context_size (AINL-20)
	ControlRefs           Control = "refs"            // files that are named can be read (AINL-40)
	ControlOutputContract Control = "output_contract" // the answer is as it was asked for (AINL-41 to AINL-43)
	ControlSensitivity    Control = "sensitivity"     // the agent may see what is so sensitive (AINL-44)
	ControlLocality       Control = "locality"        // what is confidential stays on this machine (AINL-19)
	ControlDeadline       Control = "deadline"        // over in time, or ended (AINL-45)
	ControlBudget         Control = "budget"          // no more is spent (AINL-18, AINL-46)
	ControlTools          Control = "tools"           // no other tool is used (AINL-14, AINL-47)
	ControlExecutionMode  Control = "execution_mode"  // an advisor does nothing (AINL-15)
	ControlApproval       Control = "approval"        // a person agrees (AINL-17, AINL-48, AINL-49)
	ControlEnvironment    Control = "environment"     // the agent works there (AINL-52)
	ControlChangeWindow   Control = "change_window"   // begun inside the window (AINL-58)
	ControlTrustDomain    Control = "trust_domain"    // the requester may ask the agent (AINL-60)
	ControlNearMisses     Control = "near_misses"     // no field is a misspelt control, and no control is null
	ControlLineage        Control = "lineage"         // agents that ask agents have an end (AINL-01)
)

// The controls of a sandbox. They have no field in the contract and no key below policy.
const (
	ControlFilesystem Control = "filesystem" // the agent reaches only the paths of its sandbox
	ControlNetwork    Control = "network"    // the agent reaches no other network than its sandbox has
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

// A Mode says how strictly a control is held. The zero value enforces.
type Mode int

// The modes of every control.
const (
	Enforce Mode = iota // refuse, hold or end
	Warn                // let pass, and say so
	Off                 // do not look
)

// A Level says who held a control for a run, the strongest first, so that a
// reader of its result knows what to trust.
type Level string

// The levels.
const (
	LevelKernel    Level = "kernel"         // the operating system
	LevelPartial   Level = "kernel-partial" // the operating system, except for the listed holes of the weaker sandbox
	LevelDaemon    Level = "daemon"         // mailboxd: the agent could not have done otherwise
	LevelAgentFlag Level = "agent-flag"     // the agent's own program was told so by a flag it has for that
	LevelObserved  Level = "observed"       // by what the agent reported, which it need not do
	LevelAdvisory  Level = "advisory"       // the agent was told
)

// Levels say for each control that a task was under who held it. They stand
// in output.enforcement of its result.
type Levels map[Control]Level
