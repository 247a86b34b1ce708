package policy

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
)

// Controls on tools.

// tools: a task may use the tools that its request, the manifest and the operator's grant
// all allow. A request without tools is unrestricted by itself (AINL-14, AINL-47). The
// agent gets the list; unreported use is invisible.
func (q *question) tools() envelope.Level {
	most := intersect(q.manifest.AvailableTools, q.agent.Tools)
	allowed := intersect(q.AllowedTools, most)
	q.verdict.Tools = allowed
	if most != nil && slices.ContainsFunc(q.AllowedTools, func(tool string) bool { return !ListsTool(most, tool) }) {
		if !q.enforced() {
			q.verdict.Tools = q.AllowedTools
		}
		q.warn("allowed_tools", fmt.Sprintf("agent %q does not have %s", q.Agent, disallowed(q.AllowedTools, most)))
	}
	if q.verdict.Tools == nil {
		return notApplicable
	}
	return envelope.LevelAdvisory
}

// intersect returns the tools that are in both lists; a nil list doesn't restrict.
func intersect(wanted, allowed []string) []string {
	switch {
	case allowed == nil:
		return wanted
	case wanted == nil:
		return allowed
	}
	both := []string{}
	for _, tool := range wanted {
		if ListsTool(allowed, tool) {
			both = append(both, tool)
			continue
		}
		for _, narrower := range allowed {
			if covers(tool, narrower) {
				both = append(both, narrower)
			}
		}
	}
	return both
}

// disallowed names the first tools of wanted that aren't allowed.
func disallowed(wanted, allowed []string) string {
	const most = 10
	var words string
	left := 0
	for _, tool := range wanted {
		if ListsTool(allowed, tool) {
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
