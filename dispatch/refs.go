package dispatch

import (
	"errors"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/mailbox"
)

// A RefRule says how strictly the files that a task names are judged. The zero
// value refuses what leads outside the roots, and warns of what is missing.
type RefRule struct {
	Mode     envelope.Mode // Warn only says what Enforce refuses; Off does not look
	Required bool          // what is missing refuses the task too
}

// checkRefs judges what a task refers to, without opening it (AINL-40). A file
// that is missing may still come, so that is only worth a warning unless the
// agent requires it.
func (d *Dispatcher) checkRefs(t envelope.Task) envelope.Findings {
	if len(t.Refs) == 0 {
		return nil
	}
	rule := d.agents.Refs(t.Agent)
	if rule.Mode == envelope.Off {
		return nil
	}
	var findings envelope.Findings
	for i, ref := range t.Refs {
		err := d.Box.CheckRef(ref.URI, d.opts.RefRoots)
		if err == nil {
			continue
		}
		f := envelope.Finding{Field: fmt.Sprintf("input.refs[%d].uri", i), Message: err.Error()}
		switch {
		case rule.Mode == envelope.Warn:
		case errors.Is(err, mailbox.ErrOutside) || errors.Is(err, mailbox.ErrNotRegular):
			f.Kind = envelope.SecurityViolation
		case rule.Required:
			f.Kind = envelope.ContextUnavailable
		}
		findings = append(findings, f)
	}
	return findings
}
