package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
)

func TestEventsOfUnknownKindsAreCountedAndChangeNothing(t *testing.T) {
	const unknown = `{"type":"telemetry","prompt":"secret"}` + "\n" + `{"type":"telemetry"}` + "\n" + `{"type":"checkpoint.created","session_id":"other"}` + "\n"
	for _, program := range []string{"claude", "codex", "gemini", "opencode"} {
		recorded, err := os.ReadFile(filepath.Join("testdata/profiles", program, "success.out"))
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(recorded), "\n")
		path := filepath.Join(t.TempDir(), "printed")
		if err := os.WriteFile(path+".out", []byte(first+"\n"+unknown+rest), 0o600); err != nil {
			t.Fatal(err)
		}
		b := playing(t, "replay", path, "0")
		b.Profile = agent.Profile(program)
		r := outcome(t, b).Result
		if want := `"unknown_events":{"checkpoint.created":1,"telemetry":2}`; !strings.Contains(string(r.Output.Extra), want) {
			t.Errorf("%s: output has %s; want %s", program, r.Output.Extra, want)
		}
		if r.Status != envelope.OK || r.Output.Summary != found || r.Review.Required || strings.Contains(string(r.Output.Extra), "other") {
			t.Errorf("%s: result %+v; want the answer alone", program, r)
		}
		known := outcome(t, replaying(t, program+"/success", 0)).Result
		if strings.Contains(string(known.Output.Extra), "unknown_events") {
			t.Errorf("%s: output has %s; want no unknown event", program, known.Output.Extra)
		}
	}
}
