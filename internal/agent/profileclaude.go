package agent

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/task"
)

// claudeRecipe asks Claude Code. Nobody is there to be asked for a permission,
// and the MCP servers of its user, which no list of tools names, stay away.
var claudeRecipe = recipe{
	command: []string{
		"claude", "-p", "--output-format", "stream-json", "--verbose", // which stream-json needs
		"--permission-mode", "dontAsk", "--strict-mcp-config",
	},
	model:  "--model",
	stdin:  Prompt,
	output: Claude,
	terms:  claudeTerms,
	tools:  true,
}

// claudeTerms tells it which tools there are, of which it then needs no
// permission for any, and what it may spend. An empty list is no tool.
func claudeTerms(j task.Job) []string {
	var flags []string
	if j.Tools != nil {
		// The word default would be every tool.
		list := toolList(slices.DeleteFunc(slices.Clone(j.Tools), func(name string) bool { return name == "default" }))
		flags = append(flags, "--tools", list)
		if list != "" {
			flags = append(flags, "--allowedTools", list)
		}
	}
	if cents := j.Allowance.USDCents; cents != nil && *cents > 0 {
		flags = append(flags, "--max-budget-usd", fmt.Sprintf("%d.%02d", *cents/100, *cents%100))
	}
	return flags
}

// claudeUsage counts everything that was read and written, from caches too.
type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
}

func (u claudeUsage) tokens() int64 { return u.Input + u.Output + u.CacheWrite + u.CacheRead }

// hearClaude hears a line of stream-json, or the one object of json.
func hearClaude(t *transcript, kind string, event jsontext.Value) {
	switch kind {
	case "system":
		t.begun(event, "session_id")
	case "assistant":
		t.hearClaudeMessage(event)
	case "result":
		t.hearClaudeResult(event)
	}
}

// hearClaudeMessage hears what a step has cost so far: the parts of one message
// come one by one, and each has the usage of all.
func (t *transcript) hearClaudeMessage(event jsontext.Value) {
	var said struct {
		Error   string `json:"error"`
		Message struct {
			ID    string      `json:"id"`
			Usage claudeUsage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(event, &said, lenient) != nil {
		return
	}
	switch said.Error {
	case "authentication_failed":
		t.trouble = loggedOut
	case "rate_limit", "billing_error":
		t.trouble = limited
	}
	t.step(said.Message.ID, said.Message.Usage.tokens())
}

func (t *transcript) hearClaudeResult(event jsontext.Value) {
	var said struct {
		Subtype string         `json:"subtype"`
		IsError bool           `json:"is_error"`
		Result  string         `json:"result"`
		Errors  []string       `json:"errors"`
		Session string         `json:"session_id"`
		Cost    jsontext.Value `json:"total_cost_usd"`
		Usage   *claudeUsage   `json:"usage"`
		Status  int            `json:"api_error_status"`
	}
	if json.Unmarshal(event, &said, lenient) != nil {
		return
	}
	t.done, t.text = true, said.Result
	setDefault(&t.session, said.Session)
	t.cents = cents(said.Cost)
	if said.Usage != nil {
		t.spent(said.Usage.tokens())
	}
	if !said.IsError && said.Subtype == "success" {
		t.trouble = none // what went wrong on the way was got over
		return
	}
	t.fail(cmp.Or(append(said.Errors, said.Result, said.Subtype, "it did not say why")...))
	switch said.Status {
	case 401, 403:
		t.trouble = loggedOut
	case 429, 529:
		t.trouble = limited
	}
}
