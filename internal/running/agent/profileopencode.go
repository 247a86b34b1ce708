package agent

import (
	"cmp"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/toolserver"
)

// openCodeRecipe runs opencode, version 1.18.33, which reads the prompt from a standard input that
// isn't a terminal. It rejects what its permissions would ask for. Flags:
// https://opencode.ai/docs/cli, and opencode run --help. It has no event while it tries its provider
// again; its log has.
var openCodeRecipe = recipe{
	title:   "opencode",
	command: []string{"opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR"},
	model:   "--model", // provider/model
	stdin:   Prompt,
	output:  OpenCode,
	terms:   openCodeTerms,
	rules:   openCodeRules,

	brokerEnv: toolserver.Token,

	tools:  openCodeTools,
	others: openCodeOthers,

	tested: "1.18.33",
	events: []string{"step_start", "step_finish", "text", "reasoning", "tool_use", "error"}, // https://opencode.ai/docs/cli, and what version 1.18.33 prints
	login: &login{ // https://opencode.ai/docs/providers; a provider in its settings can have its key there
		variables: []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"},
		files:     []loginFile{{dir: "XDG_DATA_HOME", below: ".local/share", name: "opencode/auth.json", words: `"type"`}},
		unsure: []loginFile{
			{dir: "OPENCODE_CONFIG_DIR", below: ".config/opencode", name: "opencode.json", words: `"provider"`},
			{dir: "OPENCODE_CONFIG", below: ".config/opencode/opencode.jsonc", words: `"provider"`},
		},
		command: "opencode auth login",
	},

	// https://opencode.ai/docs/providers and https://opencode.ai/docs/config, for the providers of keys.
	variables: []string{
		"OPENCODE_API_KEY", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY",
	},
}

// openCodeAgent is the agent of opencode that has the permissions of a run. Those of another
// agent could be set by the user, or by the project in which it works; the variable
// OPENCODE_CONFIG_CONTENT is read after both: https://opencode.ai/docs/config.
const openCodeAgent = "mailboxd"

func openCodeTerms(g grant, j task.Job) []string {
	if openCodeRules(g, j) == nil {
		return nil
	}
	return []string{"--agent", openCodeAgent}
}

// openCodeTools are those of https://opencode.ai/docs/tools.
var openCodeTools = toolGroups{
	ReadTools: {"read", "glob", "grep", "list"}, EditTools: {"edit", "write", "patch", "apply_patch", "multiedit"},
	CommandTools: {"bash"}, WebTools: {"webfetch", "websearch"},
}

var openCodeOthers = []string{"todowrite", "todoread", "task", "skill", "lsp", "question", "external_directory"}

// openCodeRead is the permission to read that opencode has by default: not the files with
// secrets (https://opencode.ai/docs/permissions#defaults).
var openCodeRead = map[string]string{"*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow"}

// openCodeRules sets the permissions of a run: https://opencode.ai/docs/permissions. The last
// key that matches counts, so that every key is named. The permission edit is for every tool that
// changes files. The tool task starts agents that have permissions of their own.
func openCodeRules(g grant, _ task.Job) *rules {
	permission := map[string]any{}
	switch {
	case g.tools != nil:
		for _, name := range slices.Concat([]string{"*"}, openCodeTools.translate(ToolNames()), openCodeOthers) {
			permission[name] = "deny"
		}
		if g.brokered {
			permission[toolserver.Name+"_*"] = "allow"
		}
		for _, name := range openCodeTools.translate(g.tools) {
			switch {
			case openCodeTools.of(name) == EditTools:
				permission["edit"] = "allow"
			case name == "read":
				permission[name] = openCodeRead
			default:
				permission[name] = "allow"
			}
		}
	case g.permission != Edit:
		return nil
	case g.commands:
		permission["edit"], permission["bash"] = "allow", "allow"
	default:
		permission["edit"], permission["bash"], permission["task"] = "allow", "deny", "deny"
	}
	config := map[string]any{"agent": map[string]any{openCodeAgent: map[string]any{"mode": "primary", "permission": permission}}}
	if g.brokered {
		config["mcp"] = toolserver.OpenCode()
	}
	text, err := json.Marshal(config, json.Deterministic(true))
	if err != nil {
		return nil // names are text
	}
	return &rules{name: "opencode.json", text: string(text), env: "OPENCODE_CONFIG_CONTENT", add: addOpenCodeAgent}
}

// addOpenCodeAgent adds the agent of mailboxd, and the tool broker, to settings of the user. It replaces an
// agent of that name, whose permissions the run would have otherwise.
func addOpenCodeAgent(own, text string) (string, error) {
	settings := members(jsontext.Value(own))
	if settings == nil {
		return "", errors.New("it is not a JSON object, and the permissions of the agent are to be added to it")
	}
	for section, ours := range members(jsontext.Value(text)) {
		all := members(settings[section])
		if all == nil {
			all = map[string]jsontext.Value{}
		}
		maps.Copy(all, members(ours))
		raw, err := json.Marshal(all, json.Deterministic(true))
		if err != nil {
			return "", err
		}
		settings[section] = raw
	}
	raw, err := json.Marshal(settings, json.Deterministic(true))
	return string(raw), err
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

				Headers map[string]string `json:"responseHeaders"`
			} `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	t.done = true
	t.fail(cmp.Or(data.Error.Data.Message, data.Error.Name, "it did not say why"))
	if refused := t.format.refusedWith(data.Error.Data.Status, t.message); refused != none {
		t.blocker = refused
	}
	if data.Error.Name == "ProviderAuthError" {
		t.blocker = loggedOut
	}
	t.readRetryAfter(data.Error.Data.Headers)
}

// readRetryAfter reads how long after an answer the provider serves again, in seconds, from
// the headers of that answer.
func (t *transcript) readRetryAfter(headers map[string]string) {
	for name, value := range headers {
		seconds, err := strconv.ParseInt(value, 10, 32)
		if strings.EqualFold(name, "retry-after") && err == nil && seconds > 0 {
			t.retryAfter = time.Duration(seconds) * time.Second
		}
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
	t.acted = true
	t.uses.order++
	switch state := part.State; {
	case part.Tool == "invalid":
		var input struct {
			Tool  string `json:"tool"`
			Error string `json:"error"`
		}
		if json.Unmarshal(state.Input, &input, lenient) == nil && isChange(input.Tool) && strings.Contains(input.Error, "unavailable tool") {
			t.uses.deny(denial{input.Tool, nil, "opencode does not offer the tool with its permissions", t.uses.order, ""})
		}
	case strings.HasPrefix(state.Error, "Model tried to call unavailable tool") && isChange(part.Tool): // where "invalid" isn't offered, too
		t.uses.deny(denial{part.Tool, shortInput(state.Input), "opencode does not offer the tool with its permissions", t.uses.order, ""})
	case state.Status == "completed":
		t.uses.succeed(part.Tool)
	case slices.ContainsFunc(openCodeDenials, func(words string) bool { return strings.HasPrefix(state.Error, words) }):
		why, _, _ := strings.Cut(state.Error, " Here are some of the relevant rules") // which are long
		t.uses.deny(denial{part.Tool, shortInput(state.Input), why, t.uses.order, ""})
	}
}
