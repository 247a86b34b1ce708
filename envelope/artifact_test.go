package envelope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
)

func TestTheURIOfAnArtifactHasASHA256(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for uri, want := range map[string]struct {
		digest string
		is     bool
	}{
		"artifact:sha256:" + digest:                  {digest, true},
		"artifact:sha256:" + strings.ToUpper(digest): {"", true},
		"artifact:sha256:" + digest + "0":            {"", true},
		"artifact:sha256:../../etc/passwd":           {"", true},
		"artifact:sha256:":                           {"", true},
		"artifact:report_456":                        {"", false},
		"ARTIFACT:sha256:" + digest:                  {"", false},
		digest:                                       {digest, false},
	} {
		if got, is := envelope.ArtifactDigest(uri); is != want.is || is && got != want.digest {
			t.Errorf("ArtifactDigest(%q) = %q, %v; want %q, %v", uri, got, is, want.digest, want.is)
		}
	}
}

func TestArtifactsAreFoundAnywhereInATextAndOnce(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	text := `{"refs":[{"uri":"artifact:sha256:` + a + `"}],"x":"see artifact:sha256:` + b + ` and artifact:sha256:` + a +
		`, artifact:sha256:short"}artifact:sha256:`
	if got := envelope.ArtifactsIn([]byte(text)); !slices.Equal(got, []string{a, b}) {
		t.Errorf("ArtifactsIn = %q; want %q and %q", got, a, b)
	}
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "artifact:sha256:%064x", i)
	}
	if got := envelope.ArtifactsIn([]byte(many.String())); len(got) != 10_000 {
		t.Errorf("ArtifactsIn found %d; want 10,000 at most", len(got))
	}
}
