package exchange

import (
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// mostFaults bounds how many faults of a result file are recorded.
const mostFaults = 20

// faultsOf says field by field why a result file that somebody placed is not the
// answer to its task (AINL-85).
func (pr *PlacedResults) faultsOf(row task.Task) []string {
	there, _, err := pr.Box.ReadResult(row.ID)
	if err != nil {
		return []string{err.Error()}
	}
	r, findings := envelope.DecodeResult(there)
	wrong := findings.Refusals()
	if r.TaskID != "" && r.TaskID != row.ID {
		wrong = append(wrong, envelope.Finding{Field: "task_id", Message: fmt.Sprintf("is %q, not %q", r.TaskID, row.ID)})
	}
	if r.AgentID != "" && !pr.mayAnswer(row, r) {
		wrong = append(wrong, envelope.Finding{Field: "agent_id", Message: fmt.Sprintf("is %q, and not the agent that fetches the task, %q", r.AgentID, row.Agent)})
	}
	faults := make([]string, 0, len(wrong))
	for _, f := range wrong[:min(len(wrong), mostFaults)] {
		faults = append(faults, f.String())
	}
	return faults
}
