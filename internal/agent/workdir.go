package agent

import (
	"fmt"

	"mailboxd/envelope"
)

// CheckPlace refuses a task that asks for a directory or a worktree. Without it, the task
// would be run in another place than its sender means.
func (g *Agent) CheckPlace(t envelope.Task) envelope.Findings {
	for key, wanted := range map[string]bool{envelope.WorkdirKey: t.Workdir() != "", envelope.WorktreeKey: t.Worktree()} {
		if wanted {
			return envelope.Findings{{
				Kind: envelope.PolicyViolation, Field: fmt.Sprintf("metadata[%q]", key),
				Message: fmt.Sprintf("agent %q takes no such tasks", g.binding.ID),
			}}
		}
	}
	return nil
}
