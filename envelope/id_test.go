package envelope_test

import (
	"strings"
	"testing"

	"mailboxd/envelope"
)

func TestADirectoryCanBeMadeForEveryID(t *testing.T) {
	seen := map[string]envelope.ID{}
	for _, text := range []string{".", "a", "-rf", ".hidden", "CON", "a b", `a\b`, strings.Repeat("x", envelope.MaxIDBytes)} {
		id, err := envelope.ParseID(text)
		if err != nil {
			t.Fatalf("ParseID(%q): %v", text, err)
		}
		dir := id.Dir()
		if dir == "" || dir == "." || dir == ".." || strings.Contains(dir, "/") || seen[dir] != "" {
			t.Errorf("ID(%q).Dir() = %q; want one path element of its own", id, dir)
		}
		seen[dir] = id
	}
}

func TestAReviewCollectsItsReasonsOnce(t *testing.T) {
	var r envelope.Review
	for _, reason := range []string{"late", "odd", "late"} {
		r.Ask(reason)
	}
	if want := (envelope.Review{Required: true, Reason: "late; odd"}); r != want {
		t.Errorf("review = %+v; want %+v", r, want)
	}
}

func TestFindingsAreRefusedByTheFirstRefusal(t *testing.T) {
	warning := envelope.Finding{Field: "a", Message: "is odd"}
	refusal := envelope.Finding{Kind: envelope.SecurityViolation, Message: "is bad"}
	fs := envelope.Findings{warning, refusal}
	if fs.Kind() != envelope.SecurityViolation || len(fs.Warnings()) != 1 || len(fs.Refusals()) != 1 {
		t.Errorf("kind %q, %v, %v; want one of each", fs.Kind(), fs.Warnings(), fs.Refusals())
	}
	if want := "a: is odd; is bad"; fs.String() != want {
		t.Errorf("String() = %q; want %q", fs, want)
	}
	if fs[:1].Refused() || envelope.Findings(nil).Refused() {
		t.Error("warnings refuse; want them not to")
	}
}
