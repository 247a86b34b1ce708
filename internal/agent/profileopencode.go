package agent

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/task"
)

// openCodeRecipe runs opencode, which reads the prompt from a standard input that isn't a
// terminal. Its user's permissions hold; it rejects what they would ask for. Flags:
// https://opencode.ai/docs/cli, and opencode run --help of version 1.18.33.
var openCodeRecipe = recipe{
	command: []string{"opencode", "run", "--format", "json"},
	model:   "--model", // provider/model
	stdin:   Prompt,
	output:  OpenCode,
	allow:   allowOpenCode,

	// https://opencode.ai/docs/providers and https://opencode.ai/docs/config, for the providers of keys.
	variables: []string{
		"OPENCODE_API_KEY", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY",
	},
}

// An openCodePart is the part of an event of --format json. The forms are those that version
// 1.18.33 prints.
type openCodePart struct {
	Message string `json:"messageID"`
	Text    string `json:"text"`
	Tokens  *struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
	Cost jsontext.Value `json:"cost"` // in dollars, for one step

	Tool  string `json:"tool"`
	State struct {
		Status string         `json:"status"`
		Input  jsontext.Value `json:"input"`
		Error  string         `json:"error"`
	} `json:"state"`
}

// readOpenCode reads a line of --format json. It has no event for the end of a run: the run
// is at its end when a step is, and no other begins.
func readOpenCode(t *transcript, kind string, event jsontext.Value) {
	t.readSession(event, "sessionID")
	var data struct {
		Part openCodePart `json:"part"`
	}
	if kind != "error" && json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	part := data.Part
	switch kind {
	case "step_start":
		t.done = false
	case "text":
		if part.Message != t.speaking {
			t.speaking, t.text = part.Message, ""
		}
		t.text = joinTexts(t.text, part.Text)
	case "tool_use":
		t.readOpenCodeTool(part)
	case "step_finish":
		t.done, t.blocker = true, none
		t.addOpenCodeCost(part)
	case "error":
		t.readOpenCodeError(event)
	}
}

// joinTexts joins two texts of a model with a line break between them, up to maxText.
func joinTexts(before, next string) string {
	if before != "" && next != "" {
		before += "\n"
	}
	return before + next[:min(len(next), max(0, maxText+1-len(before)))]
}

// addOpenCodeCost adds what a step cost. A price that can't be read makes the sum unknown.
func (t *transcript) addOpenCodeCost(part openCodePart) {
	if u := part.Tokens; u != nil {
		t.stepped += u.Input + u.Output + u.Reasoning + u.Cache.Read + u.Cache.Write
		t.spent(t.stepped)
	}
	if t.dollars == nil {
		t.dollars = new(big.Rat)
	}
	dollars, ok := new(big.Rat), decimal.Match(part.Cost)
	if ok {
		_, ok = dollars.SetString(string(part.Cost))
	}
	t.unpriced = t.unpriced || !ok
	t.dollars.Add(t.dollars, dollars)
	t.cents = wholeCents(t.dollars)
	if t.unpriced {
		t.cents = nil
	}
}

// readOpenCodeError reads the error that ends a run. That of a provider has the status and
// the headers of its answer.
func (t *transcript) readOpenCodeError(event jsontext.Value) {
	var data struct {
		Error struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
				Status  int    `json:"statusCode"`
			} `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	t.done = true
	t.fail(cmp.Or(data.Error.Data.Message, data.Error.Name, "it did not say why"))
	switch status := data.Error.Data.Status; {
	case status == 401 || status == 403 || data.Error.Name == "ProviderAuthError":
		t.blocker = loggedOut
	case status == 429:
		t.blocker = limited
	case status == 503 || status == 529:
		t.blocker = busy
	}
}

// openCodeDenials are the beginnings of errors of calls that its permissions stop:
// https://opencode.ai/docs/permissions. A tool that they deny altogether isn't offered, and a
// call of it is one of the tool "invalid".
var openCodeDenials = []string{
	"The user rejected permission to use this specific tool call",
	"The user has specified a rule which prevents you from using this specific tool call",
}

func (t *transcript) readOpenCodeTool(part openCodePart) {
	t.uses.order++
	switch state := part.State; {
	case part.Tool == "invalid":
		var input struct {
			Tool  string `json:"tool"`
			Error string `json:"error"`
		}
		if json.Unmarshal(state.Input, &input, lenient) == nil && toolKinds[input.Tool] != "" && strings.Contains(input.Error, "unavailable tool") {
			t.uses.deny(denial{input.Tool, nil, "opencode does not offer the tool with its permissions", t.uses.order})
		}
	case state.Status == "completed":
		t.uses.succeed(part.Tool)
	case slices.ContainsFunc(openCodeDenials, func(words string) bool { return strings.HasPrefix(state.Error, words) }):
		why, _, _ := strings.Cut(state.Error, " Here are some of the relevant rules") // which are long
		t.uses.deny(denial{part.Tool, shortInput(state.Input), why, t.uses.order})
	}
}

// allowOpenCode names the setting of opencode: https://opencode.ai/docs/permissions.
func allowOpenCode(_ Binding, _ task.Job, tools []string) string {
	var lines []string
	for _, tool := range tools {
		name := tool
		switch kindOf(tool) {
		case edits:
			name = "edit"
		case commands:
			name = "bash"
		}
		if line := fmt.Sprintf("%q: \"allow\"", name); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return "set \"permission\": {" + strings.Join(lines, ", ") + "} in the opencode.json that it reads"
}
