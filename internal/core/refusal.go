package core

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// Refusal is the answer to a task that a verdict doesn't admit. Its status is rejected
// as long as no agent ran, and error when one did.
func Refusal(request envelope.Task, v task.Verdict, began bool, now time.Time) []byte {
	return NotRun(request, refusalStatus(began), v.Findings.Kind(), v.Findings.Refusals().String(), began, v.Levels, now)
}

func refusalStatus(began bool) envelope.Status {
	if began {
		return envelope.Failed
	}
	return envelope.Rejected
}

// Opening begins the summary of a task that isn't run and ends with a status.
func Opening(status envelope.Status) string { return openings[status] }

var openings = map[envelope.Status]string{
	envelope.Rejected: "Rejected, no agent ran: ",
	envelope.Stopped:  "Cancelled, no agent ran: ",
	envelope.Failed:   "Not tried again: ",
}

// NotRun is the result of a task that isn't run, or not again when an attempt began. It
// names the agent that was asked for, or mailboxd when none can be read. Levels say
// which component enforced each control until then; nil: none.
func NotRun(request envelope.Task, status envelope.Status, kind envelope.Kind, why string, began bool, levels envelope.Levels, now time.Time) []byte {
	opening := openings[status]
	if status == envelope.Stopped && began {
		opening = "Cancelled before another attempt: "
	}
	agent := request.Agent
	if agent == "" {
		agent = "mailboxd"
	}
	if levels == nil {
		levels = envelope.Levels{}
	}
	r := envelope.Result{
		TaskID:     request.ID,
		AgentID:    agent,
		Status:     status,
		Output:     envelope.Output{Summary: opening + why, Enforcement: levels},
		Time:       envelope.TimeUsed{Started: now, Finished: now},
		Error:      envelope.Error{Kind: kind, Message: why},
		Provenance: provenance(request),
	}
	return r.Encode()
}

// NotAnswered is the result of a task that ends while it waits for its agent to fetch
// it.
func NotAnswered(request envelope.Task, run task.Run, status envelope.Status, kind envelope.Kind, why string, now time.Time) envelope.Result {
	return envelope.Result{
		TaskID: request.ID, AgentID: request.Agent, Status: status,
		Output:     envelope.Output{Summary: "Not answered: " + why, Enforcement: run.Terms.Levels},
		Time:       envelope.TimeUsed{Started: run.Intent, Finished: now, Wall: now.Sub(run.Intent)},
		Error:      envelope.Error{Kind: kind, Message: why},
		Provenance: provenance(request),
	}
}

// Withheld is the result of a task whose answer isn't shown. What the run cost, when it
// was and who enforced what stays, for mailboxd says that and not the agent.
func Withheld(request envelope.Task, answer []byte, status envelope.Status, kind envelope.Kind, why string) []byte {
	was, _ := envelope.DecodeResult(answer)
	r := envelope.Result{
		TaskID: request.ID, AgentID: request.Agent, Status: status,
		Output:     envelope.Output{Summary: "The agent's answer is not shown: " + why, Enforcement: was.Output.Enforcement},
		Cost:       was.Cost,
		Time:       was.Time,
		Error:      envelope.Error{Kind: kind, Message: why},
		Provenance: was.Provenance,
	}
	return r.Encode()
}

// provenance is where a request comes from, by its own word.
func provenance(request envelope.Task) envelope.Provenance {
	return envelope.Provenance{
		GraphChecksum: request.Named("ainl.graph_checksum"),
		ProgramID:     request.Named("ainl.program_id"),
	}
}
