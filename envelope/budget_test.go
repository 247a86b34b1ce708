package envelope_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

func TestTheLeastOfTwoBudgetsIsThatOfEachKind(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct{ a, b, want envelope.Budget }{
		{},
		{envelope.Budget{Tokens: n(3)}, envelope.Budget{}, envelope.Budget{Tokens: n(3)}},
		{envelope.Budget{Tokens: n(3), USDCents: n(1)}, envelope.Budget{Tokens: n(2), USDCents: n(0)}, envelope.Budget{Tokens: n(2), USDCents: n(0)}},
		{envelope.Budget{Tokens: n(0)}, envelope.Budget{USDCents: n(9)}, envelope.Budget{Tokens: n(0), USDCents: n(9)}},
	} {
		for _, got := range []envelope.Budget{c.a.Least(c.b), c.b.Least(c.a)} {
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("least differs (-want +got):\n%s", diff)
			}
		}
	}
}

func TestWordsOfSensitivityAreReadAsTheyAreWritten(t *testing.T) {
	for s := envelope.Public; s <= envelope.Restricted; s++ {
		if got, ok := envelope.ParseSensitivity(s.String()); got != s || !ok {
			t.Errorf("AINL-44: ParseSensitivity(%q) = %v, %v; want %v", s, got, ok, s)
		}
	}
	if got, ok := envelope.ParseSensitivity("Public"); got != envelope.Restricted || ok {
		t.Errorf("AINL-44: ParseSensitivity(Public) = %v, %v; want restricted, false", got, ok)
	}
}
