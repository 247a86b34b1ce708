package dialect_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func TestEveryDialectHasAVersionThatItsMessagesCarry(t *testing.T) {
	versions := dialect.Versions()
	want := []envelope.Dialect{envelope.AINL, envelope.CAP, envelope.CLowl, envelope.Clutch}
	if got := slices.Sorted(maps.Keys(versions)); !slices.Equal(got, want) {
		t.Errorf("Versions() has %v; want %v", got, want)
	}
	message := envelope.Message{ID: "m1", Act: envelope.Informs, From: "a", To: []string{"b"}}
	for d, member := range map[envelope.Dialect]string{
		envelope.CLowl:  `"clowl":"` + versions[envelope.CLowl] + `"`,
		envelope.Clutch: `"v":"clutch/` + versions[envelope.Clutch] + `"`,
	} {
		codec, ok := dialect.Of(d)
		if !ok {
			t.Fatalf("no codec of %s", d)
		}
		if line, _ := codec.Encode(message); !strings.Contains(string(line), member) {
			t.Errorf("a message of %s is %s; want %s in it", d, line, member)
		}
	}
}
