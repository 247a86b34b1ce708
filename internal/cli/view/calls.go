package view

import (
	"cmp"
	"fmt"
	"strings"

	"mailboxd/internal/decisions/task"
)

// CallRuleWords says which calls of tools are allowed, one line a rule; none for nil.
func CallRuleWords(rules *task.CallRules) (lines []string) {
	if rules == nil {
		return nil
	}
	for _, r := range rules.Rules {
		line := fmt.Sprintf("%s %s", r.Do, r.Kind)
		if r.Command != "" {
			line += fmt.Sprintf(" %q", r.Command)
		}
		if len(r.Paths) > 0 {
			line += " in " + strings.Join(r.Paths, ", ")
		}
		lines = append(lines, line)
	}
	return append(lines, string(cmp.Or(rules.Otherwise, task.RejectCall))+" any other")
}
