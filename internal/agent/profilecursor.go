package agent

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// cursorRecipe asks the agent of Cursor's command line, which reads the prompt
// from a standard input that is no terminal. Without --force it proposes what
// its user's permissions do not allow. It has no flag for single tools nor for
// what it may spend.
var cursorRecipe = recipe{
	command: []string{"cursor-agent", "-p", "--output-format", "json", "--trust"},
	model:   "--model",
	stdin:   Prompt,
	output:  Cursor,
}

// hearCursor hears the one object of json, or a line of stream-json. Of a
// failure there is none, only words on standard error.
func hearCursor(t *transcript, kind string, event jsontext.Value) {
	if kind == "system" {
		t.begun(event, "session_id")
	}
	if kind != "result" {
		return
	}
	var said struct {
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
	if json.Unmarshal(event, &said, lenient) != nil {
		return
	}
	t.done, t.text = true, said.Result
	setDefault(&t.session, said.Session)
	if u := said.Usage; u != nil {
		t.spent(u.Input + u.Output + u.CacheRead + u.CacheWrite)
	}
	if said.IsError {
		t.fail(cmp.Or(said.Error, said.Result, "it did not say why"))
	}
}
