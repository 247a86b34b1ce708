package policy

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
)

// What a task may use.

// tools: a task uses what its request, the manifest and the operator's grant
// all allow; a request that names none leaves the others' (AINL-14, AINL-47).
// The agent is told; nobody sees what it uses and does not report.
func (q *question) tools() envelope.Level {
	most := narrow(q.manifest.AvailableTools, q.agent.Tools)
	allowed := narrow(q.AllowedTools, most)
	q.verdict.Tools = allowed
	if len(allowed) < len(q.AllowedTools) {
		if !q.enforced() {
			q.verdict.Tools = q.AllowedTools
		}
		q.warn("allowed_tools", fmt.Sprintf("agent %q does not have %s", q.Agent, list(q.AllowedTools, most)))
	}
	if q.verdict.Tools == nil {
		return nobody
	}
	return envelope.LevelAdvisory
}

// narrow returns the tools of wanted that are also in allowed; a list that is
// nil leaves the other as it is.
func narrow(wanted, allowed []string) []string {
	switch {
	case allowed == nil:
		return wanted
	case wanted == nil:
		return allowed
	}
	both := []string{}
	for _, tool := range wanted {
		if slices.Contains(allowed, tool) {
			both = append(both, tool)
		}
	}
	return both
}

// list names the first tools of wanted that are not in allowed.
func list(wanted, allowed []string) string {
	const most = 10
	var words string
	left := 0
	for _, tool := range wanted {
		if slices.Contains(allowed, tool) {
			continue
		}
		if left++; left <= most {
			words += fmt.Sprintf(", %.80q", tool)
		}
	}
	if left > most {
		words += fmt.Sprintf(" and %d more", left-most)
	}
	return words[len(", "):]
}
