package dispatch

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A refusal is the answer to a task that will not be run, or not again.
type refusal struct {
	status   envelope.Status
	findings envelope.Findings
	result   []byte
}

// newRefusal is the answer to a task that a verdict does not admit. Its status
// is rejected as long as no agent ran, and error when one did.
func newRefusal(t envelope.Task, v task.Verdict, now time.Time, ran bool) *refusal {
	status := envelope.Rejected
	if ran {
		status = envelope.Failed
	}
	return &refusal{status, v.Findings, unrun(t, status, v.Findings.Kind(), v.Findings.Refusals().String(), ran, v.Levels, now)}
}

// sayings begin the summary of a task that is not run.
var sayings = map[envelope.Status]string{
	envelope.Rejected: "Rejected, no agent ran: ",
	envelope.Stopped:  "Cancelled, no agent ran: ",
	envelope.Failed:   "Not tried again: ",
}

// unrun is the result of a task that is not run, or not again if it ran, why, and
// who held what until then: nobody anything, if levels is nil. It names the agent that was asked
// for, or us when none can be read.
func unrun(t envelope.Task, status envelope.Status, kind envelope.Kind, why string, ran bool, levels envelope.Levels, now time.Time) []byte {
	saying := sayings[status]
	if status == envelope.Stopped && ran {
		saying = "Cancelled before another attempt: "
	}
	agent := t.Agent
	if agent == "" {
		agent = "mailboxd"
	}
	if levels == nil {
		levels = envelope.Levels{}
	}
	r := envelope.Result{
		TaskID:  t.ID,
		AgentID: agent,
		Status:  status,
		Output:  envelope.Output{Summary: saying + why, Enforcement: levels},
		Time:    envelope.TimeUsed{Started: now, Finished: now},
		Error:   envelope.Error{Kind: kind, Message: why},
		Provenance: envelope.Provenance{
			GraphChecksum: t.Named("ainl.graph_checksum"),
			ProgramID:     t.Named("ainl.program_id"),
		},
	}
	return r.Encode()
}
