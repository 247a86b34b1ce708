package agent

import (
	"testing"

	events "mailboxd/internal/running/transcript"
)

// first are events with which a program begins, so that its others are known for events.
var first = map[Profile]string{
	Claude:   `{"type":"system","subtype":"init","session_id":"s","tools":[]}`,
	Codex:    `{"type":"thread.started","thread_id":"s"}`,
	Cursor:   `{"type":"system","subtype":"init","session_id":"s"}`,
	Gemini:   `{"type":"init","session_id":"s"}`,
	OpenCode: `{"type":"step_start","sessionID":"s","part":{}}`,
	ACP:      `{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}`,
}

func TestLogsKnowTheKindsOfEventsThatTheProfilesKnow(t *testing.T) {
	for profile, recipe := range recipes {
		if len(recipe.events) == 0 {
			if recipe.tested != "" {
				t.Errorf("%s has no list of its events", profile)
			}
			continue
		}
		for _, kind := range recipe.events {
			var r events.Reader
			r.Read([]byte(first[profile]))
			r.Read([]byte(`{"type":"` + kind + `","item":{"type":"reasoning"}}`))
			if r.Hidden() != 0 {
				t.Errorf("%s: logs do not know %s", profile, kind)
			}
		}
	}
}
