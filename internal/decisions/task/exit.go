package task

import "time"

// A Cause says why the daemon ended a run, or how a run ended without failing. The zero
// value means that the run ended by itself.
type Cause string

// The causes.
const (
	CauseTimeout        Cause = "timeout"          // the run timed out
	CauseIdleTimeout    Cause = "idle_timeout"     // no output for too long
	CauseExitTimeout    Cause = "exit_timeout"     // the process answered, but did not exit in time
	CauseDeadline       Cause = "deadline"         // the task's deadline was reached
	CauseOutputTooLarge Cause = "output_too_large" // too much output
	CauseMemory         Cause = "out_of_memory"    // the kernel killed processes of the run because of its limit
	CauseInterrupted    Cause = "interrupted"      // the daemon ended it
	CauseLease          Cause = "lease"            // at a runner: the owner did not extend its lease, so another run may begin
	CauseLost           Cause = "lost"             // the keeper was gone, so the exit is unknown
	CausePutBack        Cause = "put_back"         // the run does not count: its agent needs a login, or its provider reached a limit
	CauseNotStarted     Cause = "not_started"      // the agent could not be started after the setup
	CauseSandbox        Cause = "sandbox"          // the sandbox could not be made, so no agent ran
	CauseNoAnswer       Cause = "spoke"            // the run ended without an answer, because its agent waits for others
	CauseRefused        Cause = "refused"          // the run ended without an answer, after a message that is refused, such as the call of a tool
)

// An Exit says how a run ended. It is part of exit.json.
type Exit struct {
	Code        int           `json:"code"`                // -1 when a signal ended it
	Signal      string        `json:"signal,omitempty"`    // "SIGKILL (9)", or "" when it exited
	Cause       Cause         `json:"cause,omitempty"`     // why it was ended
	Reason      string        `json:"reason,omitempty"`    // the context's cause, if interrupted; why there was no sandbox, or no agent
	PID         int           `json:"pid"`                 // of the process; the system may have reused it
	Started     time.Time     `json:"started"`             // wall clock, as Finished
	Finished    time.Time     `json:"finished"`            // when the process itself ended
	Wall        time.Duration `json:"wall_ns"`             // monotonic, so independent of changes of the clock
	Survivors   []Survivor    `json:"survivors,omitempty"` // processes left when the process ended
	OutputBytes int64         `json:"said,omitempty"`      // bytes of output and answer at that time
	Sandboxed   bool          `json:"sandboxed,omitempty"` // the agent's processes were in a sandbox from their start
	Confined    bool          `json:"confined,omitempty"`  // they were in the weaker sandbox, which holds less, from their start
	Setup       bool          `json:"setup,omitempty"`     // the run ended in its setup, so no agent ran
}

// A Survivor is a process that outlived its run and was ended.
type Survivor struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // the first 15 bytes of its name
	Killed  bool   `json:"killed"`  // by SIGKILL, because SIGTERM and the grace period were not enough
}
