package reader

import (
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/exit"
)

// Roles are the roles of AINL's contract, for agents whose manifest names none.
var Roles = []string{"executor", "advisor", "reviewer"}

// CheckRequest returns why a daemon would refuse a task, as far as its request alone says,
// with the values that it would take.
func CheckRequest(line []byte, roles []string) error {
	t, findings := envelope.DecodeTask(line, envelope.Strict)
	var wrong []string
	for _, f := range findings {
		switch {
		case f.Field == "deadline":
			wrong = append(wrong, f.String()+", or a duration such as 30m")
		case f.Field == "sensitivity":
			wrong = append(wrong, "sensitivity: must be public, internal, confidential or restricted")
		case !f.Warning():
			wrong = append(wrong, f.String())
		}
	}
	if t.Role != "" && !slices.Contains(roles, t.Role) {
		wrong = append(wrong, "target_role: must be one of "+strings.Join(roles, ", ")+", not "+t.Role)
	}
	if len(wrong) == 0 {
		return nil
	}
	return exit.With(exit.Usage, "not sent: %s", strings.Join(wrong, "; "))
}
