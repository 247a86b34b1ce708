package schema_test

import (
	"slices"
	"testing"

	"mailboxd/internal/running/schema"
)

// CLUTCH-41: the built-in payload types, with the required fields of the seed's section 3.3.
func TestThePayloadTypesOfClutchAreBuiltIn(t *testing.T) {
	s, err := schema.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for payloadType, c := range map[string]struct{ ref, good, bad string }{
		"research.summary.v1": {"schema://clutch/research/summary@1", `{"findings": [], "citations": ["https://x"], "title": "t"}`, `{"findings": []}`},
		"research.sources.v1": {"schema://clutch/research/sources@1", `{"sources": ["a"], "relevance_scores": {"a": 0.5}}`, `{"sources": "a", "relevance_scores": {}}`},
		"code.output.v1":      {"schema://clutch/code/output@1", `{"files": [], "language": "go", "tests_passed": true}`, `{"files": [], "language": "go"}`},
		"code.review.v1":      {"schema://clutch/code/review@1", `{"findings": [], "severity": "low"}`, `{"findings": [], "severity": 1}`},
		"review.feedback.v1":  {"schema://clutch/review/feedback@1", `{"decision": "approved", "comments": "", "blocking_issues": []}`, `{"decision": "approved", "comments": ""}`},
	} {
		if ref := schema.RefOf(payloadType); ref != c.ref || schema.PayloadTypeOf(ref) != payloadType {
			t.Errorf("RefOf(%s) = %s, and back %s; want %s and back", payloadType, ref, schema.PayloadTypeOf(ref), c.ref)
		}
		if err := s.Check(c.ref, []byte(c.good)); err != nil {
			t.Errorf("Check(%s, %s) = %v; want nil", c.ref, c.good, err)
		}
		if err := s.Check(c.ref, []byte(c.bad)); err == nil {
			t.Errorf("Check(%s, %s) = nil; want an error", c.ref, c.bad)
		}
		if !schema.IsBuiltIn(c.ref) || !slices.Contains(s.Refs(), c.ref) || s.Text(c.ref) == nil {
			t.Errorf("%s is not listed as built in", c.ref)
		}
	}
}

// CLUTCH-40.
func TestAPayloadTypeNamesAFile(t *testing.T) {
	for payloadType, want := range map[string]string{
		"acme.report.v12": "schema://clutch/acme/report@12", "a.b.c.v1": "schema://clutch/a/b/c@1",
		"": "", "report": "", "report.v1": "", "acme.report": "", "acme.report.v0": "", "acme..report.v1": "", "acme/../x.y.v1": "", "Acme.report.v1": "",
	} {
		if got := schema.RefOf(payloadType); got != want {
			t.Errorf("RefOf(%q) = %q; want %q", payloadType, got, want)
		}
	}
	for _, ref := range []string{"schema://acme/report/v2", schema.AgentOutput, "schema://clutch/report@1", "schema://clutch/a/b@0", ""} {
		if got := schema.PayloadTypeOf(ref); got != "" {
			t.Errorf("PayloadTypeOf(%q) = %q; want none", ref, got)
		}
	}
	s := load(t, map[string]string{"clutch/acme/report@12.json": `{"required": ["n"]}`})
	if err := s.Check(schema.RefOf("acme.report.v12"), []byte(`{}`)); err == nil {
		t.Error("Check(acme.report.v12) = nil; want the file clutch/acme/report@12.json to be used")
	}
}
