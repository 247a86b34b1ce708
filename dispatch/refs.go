package dispatch

import (
	"errors"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/mailbox"
)

// checkRefs judges what a task refers to, without opening it (AINL-40). A file
// that is missing may still come, so that is only worth a warning.
func (d *Dispatcher) checkRefs(t envelope.Task) envelope.Findings {
	var findings envelope.Findings
	for i, ref := range t.Refs {
		err := d.Box.CheckRef(ref.URI, d.opts.RefRoots)
		if err == nil {
			continue
		}
		f := envelope.Finding{Field: fmt.Sprintf("input.refs[%d].uri", i), Message: err.Error()}
		if errors.Is(err, mailbox.ErrOutside) || errors.Is(err, mailbox.ErrNotRegular) {
			f.Kind = envelope.SecurityViolation
		}
		findings = append(findings, f)
	}
	return findings
}
