package agent

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// cursorRecipe runs cursor-agent, which reads the prompt from a standard input that isn't a
// terminal. Without --force, it only proposes actions that its user's permissions don't
// allow. It has no flag for single tools or a budget.
var cursorRecipe = recipe{
	title:   "Cursor's agent",
	command: []string{"cursor-agent", "-p", "--output-format", "json", "--trust"},
	model:   "--model",
	stdin:   Prompt,
	output:  Cursor,

	events: []string{"system", "user", "assistant", "thinking", "tool_call", "result"}, // https://cursor.com/docs/cli/reference/output-format
	login: &login{ // https://cursor.com/docs/cli/reference/authentication
		variables: []string{"CURSOR_API_KEY"},
		files:     []loginFile{{below: ".config/cursor", name: "auth.json"}},
		command:   "cursor-agent login", key: "CURSOR_API_KEY",
	},

	variables: []string{"CURSOR_API_KEY"}, // https://cursor.com/docs/cli/reference/authentication
}

// readCursor reads the one object of json, or a line of stream-json. A failure has no
// event, only text on standard error.
func readCursor(t *transcript, kind string, event jsontext.Value) {
	if kind == "system" {
		t.readSession(event, "session_id")
	}
	if kind != "result" {
		return
	}
	var data struct {
		IsError bool   `json:"is_error"`
		Result  string `json:"result"`
		Error   string `json:"error"`
		Session string `json:"session_id"`
		Usage   *struct {
			Input      int64 `json:"inputTokens"`
			Output     int64 `json:"outputTokens"`
			CacheRead  int64 `json:"cacheReadTokens"`
			CacheWrite int64 `json:"cacheWriteTokens"`
		} `json:"usage"` // newer versions only
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	t.done, t.text = true, data.Result
	setDefault(&t.session, data.Session)
	if u := data.Usage; u != nil {
		t.spent(u.Input + u.Output + u.CacheRead + u.CacheWrite)
	}
	if data.IsError {
		t.fail(cmp.Or(data.Error, data.Result, "it did not say why"))
	}
}
