package task

import "time"

// A Cause says why a run was ended, or how one ended that is no failure. The zero
// value means that it ended by itself.
type Cause string

// The causes.
const (
	CauseTimeout        Cause = "timeout"          // its time was over
	CauseIdleTimeout    Cause = "idle_timeout"     // no sign of life for too long
	CauseExitTimeout    Cause = "exit_timeout"     // answered, and did not exit in time
	CauseDeadline       Cause = "deadline"         // the task's deadline was reached
	CauseOutputTooLarge Cause = "output_too_large" // it wrote more than it may
	CauseInterrupted    Cause = "interrupted"      // the daemon ended it
	CauseLost           Cause = "lost"             // its keeper was gone: nobody knows how it ended
	CausePutBack        Cause = "put_back"         // it did nothing, because its agent waits for a person
	CauseNoAnswer       Cause = "spoke"            // it ended without an answer, because its agent waits for others
)

// An Exit says how a run ended. It is also what exit.json holds, beside what
// meta.json says.
type Exit struct {
	Code      int           `json:"code"`                // -1 when a signal ended it
	Signal    string        `json:"signal,omitempty"`    // "SIGKILL (9)", or "" when it exited
	Cause     Cause         `json:"cause,omitempty"`     // why it was ended
	Reason    string        `json:"reason,omitempty"`    // the context's cause, when interrupted
	PID       int           `json:"pid"`                 // of the process; another may have it by now
	Started   time.Time     `json:"started"`             // by the wall clock, as is Finished
	Finished  time.Time     `json:"finished"`            // when the process itself was gone
	Wall      time.Duration `json:"wall_ns"`             // measured, also across a clock that was set
	Survivors []Survivor    `json:"survivors,omitempty"` // what was left when the process was gone
	Said      int64         `json:"said,omitempty"`      // bytes in its output and its answer then
}

// A Survivor is a process that its run left behind, and that was ended.
type Survivor struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // the first 15 bytes of its name
	Killed  bool   `json:"killed"`  // SIGTERM and the grace were not enough
}
