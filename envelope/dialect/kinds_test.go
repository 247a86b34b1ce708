package dialect_test

import (
	"slices"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func TestACodeMeansAllItsKinds(t *testing.T) {
	late := dialect.KindsOf("504")
	if !slices.Equal(late, dialect.KindsOf("E006")) || !slices.Contains(late, envelope.Timeout) || !slices.Contains(late, envelope.OversightExpired) {
		t.Errorf("504 means %q, E006 %q", late, dialect.KindsOf("E006"))
	}
	if got := dialect.KindsOf("403"); !slices.Contains(got, envelope.PolicyViolation) || !slices.Contains(got, envelope.DelegationDenied) {
		t.Errorf("403 means %q", got)
	}
	if got := dialect.KindsOf("timeout"); !slices.Equal(got, []envelope.Kind{envelope.Timeout}) {
		t.Errorf("timeout means %q", got)
	}
	if got := dialect.KindsOf("E999"); got != nil {
		t.Errorf("E999 means %q", got)
	}
}
