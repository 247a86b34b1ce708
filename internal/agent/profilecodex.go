package agent

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/task"
)

// codexRecipe runs Codex, which reads the prompt if its argument is "-". It has no flag for
// single tools or a budget; its user sets its sandbox.
var codexRecipe = recipe{
	command: []string{"codex", "exec", "--json", "--skip-git-repo-check"},
	model:   "--model",
	stdin:   Prompt,
	output:  Codex,
	terms:   func(task.Job) []string { return []string{"-"} },

	// https://developers.openai.com/codex/auth and https://developers.openai.com/codex/config-reference
	variables: []string{"CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"},
}

// readCodex reads a line of --json.
func readCodex(t *transcript, kind string, event jsontext.Value) {
	switch kind {
	case "thread.started":
		t.readSession(event, "thread_id")
	case "turn.started":
		t.done = false
	case "error": // also before a retry of its own
		t.message = codexWords(event)
	case "turn.failed":
		t.done = true
		t.fail(codexWords(member(event, "error")))
	case "item.completed":
		var item struct{ Type, Text string }
		if json.Unmarshal(member(event, "item"), &item, lenient, json.MatchCaseInsensitiveNames(true)) == nil && item.Type == "agent_message" {
			t.text = item.Text // the last one is the answer
		}
	case "turn.completed":
		t.done = true
		var usage struct {
			Input  int64 `json:"input_tokens"` // includes cached tokens
			Output int64 `json:"output_tokens"`
		}
		if u := member(event, "usage"); u != nil && json.Unmarshal(u, &usage, lenient) == nil {
			t.spent(usage.Input + usage.Output)
		}
	}
}

func codexWords(event jsontext.Value) string {
	var data struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(event, &data, lenient) != nil || data.Message == "" {
		return "it did not say why"
	}
	return data.Message
}
