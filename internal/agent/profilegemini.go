package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/task"
)

// geminiRecipe runs Gemini CLI, which reads the prompt from a standard input that isn't a
// terminal. It refuses to work in an untrusted directory, and a run directory is always
// new. Its flag --allowed-tools only skips confirmations and enforces nothing; it has no
// flag for a budget.
var geminiRecipe = recipe{
	command: []string{"gemini", "--output-format", "stream-json", "--skip-trust"},
	model:   "--model",
	stdin:   Prompt,
	output:  Gemini,
	allow:   allowGemini,

	// https://geminicli.com/docs/get-started/authentication, and the variables of the library that it
	// calls: https://github.com/googleapis/js-genai
	variables: []string{
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
		"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_APPLICATION_CREDENTIALS",
	},
}

// A geminiEnd is the last event of stream-json, or the one object of json.
type geminiEnd struct {
	Session  string `json:"session_id"`
	Response string `json:"response"`
	Status   string `json:"status"`
	Error    *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats *struct {
		Tokens *int64 `json:"total_tokens"` // of stream-json
		Models map[string]struct {
			Tokens struct {
				Total int64 `json:"total"`
			} `json:"tokens"`
		} `json:"models"` // of json
	} `json:"stats"`
}

// readGemini reads a line of stream-json, or the one object of json, which has no type.
func readGemini(t *transcript, kind string, event jsontext.Value) {
	switch kind {
	case "init":
		t.readSession(event, "session_id")
	case "message":
		var data struct{ Role, Content string }
		if json.Unmarshal(event, &data, lenient, json.MatchCaseInsensitiveNames(true)) == nil && data.Role == "assistant" {
			if t.turned && t.text != "" && !strings.HasSuffix(t.text, "\n") {
				t.text += "\n" // a tool was used between the two texts
			}
			t.turned = false
			t.text += data.Content[:min(len(data.Content), max(0, maxText+1-len(t.text)))]
		}
	case "tool_use":
		var use struct {
			ID    string         `json:"tool_id"`
			Tool  string         `json:"tool_name"`
			Input jsontext.Value `json:"parameters"`
		}
		if json.Unmarshal(event, &use, lenient) == nil {
			t.uses.call(use.ID, use.Tool, use.Input)
		}
		t.turned = true
	case "tool_result":
		t.readGeminiToolResult(event)
	case "result", "":
		var end geminiEnd
		if json.Unmarshal(event, &end, lenient) == nil {
			t.hearGeminiEnd(end)
		}
	}
}

func (t *transcript) hearGeminiEnd(end geminiEnd) {
	if end.Error == nil && end.Status == "" && end.Response == "" && end.Stats == nil {
		return // another object
	}
	t.done = true
	setDefault(&t.session, end.Session)
	t.text = cmp.Or(end.Response, t.text)
	if s := end.Stats; s != nil {
		total := int64(0)
		for _, model := range s.Models {
			total += model.Tokens.Total
		}
		if s.Tokens != nil {
			total = *s.Tokens
		}
		t.spent(total)
	}
	if end.Error != nil {
		t.fail(cmp.Or(end.Error.Message, end.Error.Type, "it did not say why"))
	} else if end.Status == "error" {
		t.fail("it did not say why")
	}
}

// readGeminiToolResult reads the result of a call. Without a terminal, Gemini CLI doesn't offer
// tools that need a confirmation: a call of one ends as tool_not_registered. A rule of its
// policy engine ends as policy_violation (https://geminicli.com/docs/reference/policy-engine).
func (t *transcript) readGeminiToolResult(event jsontext.Value) {
	var data struct {
		ID     string `json:"tool_id"`
		Status string `json:"status"`
		Error  struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	use := t.uses.take(data.ID)
	switch {
	case data.Status != "error":
		t.uses.succeed(use.tool)
	case data.Error.Type == "tool_not_registered" && toolKinds[use.tool] != "":
		t.uses.deny(denial{use.tool, use.input, "Gemini CLI does not offer the tool in its approval mode", t.uses.order})
	case data.Error.Type == "policy_violation":
		t.uses.deny(denial{use.tool, use.input, cmp.Or(data.Error.Message, "its policy denies it"), t.uses.order})
	}
}

// allowGemini names the approval mode: https://geminicli.com/docs/cli/cli-reference.
func allowGemini(b Binding, _ task.Job, tools []string) string {
	mode := "auto_edit"
	if slices.ContainsFunc(tools, func(tool string) bool { return kindOf(tool) != edits }) {
		mode = "yolo"
	}
	return fmt.Sprintf("set exec: {command: [%s, --approval-mode, %s]} of agent %q", strings.Join(b.Command, ", "), mode, b.ID)
}
