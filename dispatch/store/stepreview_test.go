package store_test

import (
	"testing"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
)

// The answer of a step needs an approval, also if its agent is the approver.
func TestTheApproverOfAStepDoesNotApproveItself(t *testing.T) {
	p := store.Protocol{
		Overseer:   func(string) string { return "" },
		StepReview: func(envelope.Task) string { return "editor" },
	}
	if got := p.OverseerOf("editor", envelope.Task{}); got != "editor" {
		t.Errorf("OverseerOf(editor) = %q; want editor, so that the answer is withheld as for an overseer", got)
	}
}
