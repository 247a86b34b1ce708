package envelope_test

import (
	"strings"
	"testing"

	"mailboxd/envelope"
)

func TestFindingsArePutIntoFewWords(t *testing.T) {
	var all envelope.Findings
	for range 100_000 {
		all = append(all, envelope.Finding{Kind: envelope.InvalidEnvelope, Field: "to", Message: "is wrong"})
	}
	said := all.String()
	if len(said) > 1000 || !strings.HasPrefix(said, "to: is wrong; to: ") || !strings.HasSuffix(said, "; and 99980 more") {
		t.Errorf("100000 findings say %d bytes, %.40s ... %s; want the first 20 and how many more", len(said), said, said[len(said)-20:])
	}
	if said := all[:20].String(); strings.Contains(said, "more") {
		t.Errorf("20 findings say %s; want each", said)
	}
}
