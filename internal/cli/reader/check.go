package reader

import (
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/cli/exit"
)

// Roles are the roles of AINL's contract, for agents whose manifest names none.
var Roles = []string{"executor", "advisor", "reviewer"}

// NearMisses returns the near misses in the requests of a line, in any dialect, as their mode
// says.
func NearMisses(line []byte, how envelope.Reading, mode envelope.Mode) (found envelope.Findings) {
	for _, piece := range dialect.Read(line, how) {
		found = append(found, mode.Apply(piece.Message.Request.NearMisses)...)
	}
	return found
}

// CheckRequest returns why a daemon would refuse a task, as far as its request alone says,
// with the values that it would take. The mode is that of near misses.
func CheckRequest(line []byte, roles []string, nearMisses envelope.Mode) error {
	t, findings := envelope.DecodeTask(line, envelope.Strict)
	var wrong []string
	for _, f := range append(findings, nearMisses.Apply(t.NearMisses)...) {
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
