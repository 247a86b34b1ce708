package core

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Refusal returns the result of a task that a verdict refuses. Its status is rejected if no
// agent ran, and error otherwise.
func Refusal(request envelope.Task, v task.Verdict, began bool, now time.Time) []byte {
	return NotRun(request, refusalStatus(began), v.Findings.Kind(), v.Findings.Refusals().String(), began, v.Levels, now)
}

func refusalStatus(began bool) envelope.Status {
	if began {
		return envelope.Failed
	}
	return envelope.Rejected
}

// Opening returns the first words of the summary of a task that ends without a run.
func Opening(status envelope.Status) string { return openings[status] }

var openings = map[envelope.Status]string{
	envelope.Rejected: "Rejected, no agent ran: ",
	envelope.Stopped:  "Cancelled, no agent ran: ",
	envelope.Failed:   "Not tried again: ",
}

// NotRun returns the result of a task that ends without a run, or without another attempt.
// It names the requested agent, or mailboxd if the request has none. Levels say which
// component enforced each control until then; nil: none.
func NotRun(request envelope.Task, status envelope.Status, kind envelope.Kind, why string, began bool, levels envelope.Levels, now time.Time) []byte {
	opening := openings[status]
	if status == envelope.Stopped && began {
		opening = "Cancelled before another attempt: "
	}
	agent := request.Agent
	if agent == "" || agent == envelope.Everybody {
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
	envelope.MarkSignature(&r, request)
	return r.Encode()
}

// NotAnswered returns the result of a task that ends while it waits for its agent.
func NotAnswered(request envelope.Task, run task.Run, status envelope.Status, kind envelope.Kind, why string, now time.Time) envelope.Result {
	r := envelope.Result{
		TaskID: request.ID, AgentID: request.Agent, Status: status,
		Output:     envelope.Output{Summary: "Not answered: " + why, Enforcement: run.Terms.Levels},
		Time:       envelope.TimeUsed{Started: run.Intent, Finished: now, Wall: now.Sub(run.Intent)},
		Error:      envelope.Error{Kind: kind, Message: why},
		Provenance: provenance(request),
	}
	envelope.MarkSignature(&r, request)
	return r
}

// withheld returns the result of a task whose answer isn't shown. It keeps cost, time and
// levels, because mailboxd measured them and not the agent.
func (d *decision) withheld(request envelope.Task, answer []byte, status envelope.Status, kind envelope.Kind, why string) []byte {
	was, _ := envelope.DecodeResult(answer)
	if was.Time == (envelope.TimeUsed{}) { // it can't be read
		was.Time = envelope.TimeUsed{Started: d.now, Finished: d.now}
	}
	r := envelope.Result{
		TaskID: request.ID, AgentID: request.Agent, Status: status,
		Output:     envelope.Output{Summary: "The agent's answer is not shown: " + why, Enforcement: was.Output.Enforcement},
		Cost:       was.Cost,
		Time:       was.Time,
		Error:      envelope.Error{Kind: kind, Message: why},
		Provenance: was.Provenance,
	}
	envelope.MarkSignature(&r, request)
	return r.Encode()
}

// provenance returns the origin that a request states.
func provenance(request envelope.Task) envelope.Provenance {
	return envelope.Provenance{
		GraphChecksum: request.Named("ainl.graph_checksum"),
		ProgramID:     request.Named("ainl.program_id"),
	}
}
