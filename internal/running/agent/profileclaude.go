package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/toolserver"
)

// claudeRecipe runs Claude Code, version 2.1.197. It can't ask for permissions, and doesn't load
// its user's MCP servers, because no tool list names them. The tool broker of a run is its only one.
var claudeRecipe = recipe{
	title: "Claude Code",
	command: []string{
		"claude", "-p", "--output-format", "stream-json", "--verbose", // required by stream-json
		"--permission-mode", "dontAsk", "--strict-mcp-config",
	},
	model:      "--model",
	stdin:      Prompt,
	output:     Claude,
	permission: claudePermission,
	terms:      claudeTerms,
	servers:    toolserver.Claude,
	brokerEnv:  toolserver.ClaudeWaits,

	tools: claudeTools,

	tested: "2.1.197",
	events: []string{"system", "assistant", "user", "rate_limit_event", "stream_event", "thinking", "result"}, // https://code.claude.com/docs/en/headless
	login: &login{ // https://code.claude.com/docs/en/authentication
		variables: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
			"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
		},
		files:   []loginFile{{dir: "CLAUDE_CONFIG_DIR", below: ".claude", name: ".credentials.json"}},
		unsure:  []loginFile{{dir: "CLAUDE_CONFIG_DIR", below: ".claude", name: "settings.json", words: `"apiKeyHelper"`}},
		command: "run claude, then type /login", key: "ANTHROPIC_API_KEY",
	},
	others: []string{
		"Agent", "Task", "TodoWrite", "Skill", "SlashCommand", "MultiEdit", "LS", "NotebookRead", "BashOutput", "KillShell", "AskUserQuestion", "LSP",
		"EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate",
		"CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "SendMessage", "Workflow", "Monitor", "ToolSearch", "DesignSync", "ReportFindings",
		"ListMcpResourcesTool", "ReadMcpResourceTool", "default",
	},

	// https://code.claude.com/docs/en/env-vars
	variables: []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
	},
}

// claudeTools are those of https://code.claude.com/docs/en/tools-reference. Without a list, Grep
// and Glob aren't offered.
var claudeTools = toolGroups{
	ReadTools: {"Read", "Grep", "Glob"}, EditTools: {"Edit", "Write", "NotebookEdit"}, CommandTools: {"Bash"}, WebTools: {"WebFetch", "WebSearch"},
}

// claudePermission sets the mode. acceptEdits accepts edits in the working directory, and denies
// what else would need a question: https://code.claude.com/docs/en/permission-modes.
func claudePermission(g grant) []string {
	if g.permission == Edit {
		return []string{"--permission-mode", "acceptEdits"}
	}
	return nil
}

// claudeTerms passes the tools, which then need no permission, and the budget. An empty
// list means no tools.
func claudeTerms(g grant, j task.Job) []string {
	var flags []string
	switch {
	case g.tools != nil:
		// The name default would mean every tool.
		tools := slices.DeleteFunc(slices.Clone(g.tools), func(name string) bool { return name == "default" })
		list := toolList(claudeTools.translate(tools))
		flags = append(flags, "--tools", list) // which has no tools of MCP servers
		if g.brokered {
			flags = append(flags, "--mcp-config", inDir(j, serversFile))
			list = strings.TrimPrefix(list+",mcp__"+toolserver.Name, ",")
		}
		if list != "" {
			flags = append(flags, "--allowedTools", list)
		}
	case g.permission == Edit && g.commands:
		flags = append(flags, "--allowedTools", "Bash")
	}
	if cents := j.Allowance.USDCents; cents != nil && *cents > 0 {
		flags = append(flags, "--max-budget-usd", fmt.Sprintf("%d.%02d", *cents/100, *cents%100))
	}
	return flags
}

// claudeUsage counts all tokens, cached ones too.
type claudeUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
}

func (u claudeUsage) tokens() int64 { return u.Input + u.Output + u.CacheWrite + u.CacheRead }

// readClaude reads a line of stream-json, or the one object of json.
func readClaude(t *transcript, kind string, event jsontext.Value) {
	switch kind {
	case "system":
		t.readSession(event, "session_id")
	case "assistant":
		t.readClaudeMessage(event)
		t.readClaudeBlocks(event)
	case "user":
		t.readClaudeBlocks(event)
	case "rate_limit_event":
		t.readClaudeLimit(event)
	case "result":
		t.hearClaudeResult(event)
	}
}

// readClaudeLimit reads when a limit ends: since version 2.1.45, an event reports the state
// of the limits before the failure of the run (github.com/paperclipai/paperclip/pull/5776).
// Most of these events report that nothing is used up.
func (t *transcript) readClaudeLimit(event jsontext.Value) {
	var data struct {
		Info struct {
			Status string `json:"status"`
			Resets int64  `json:"resetsAt"`
		} `json:"rate_limit_info"`
	}
	if json.Unmarshal(event, &data, lenient) == nil && data.Info.Status == "rejected" {
		t.resets = data.Info.Resets
	}
}

// readClaudeMessage reads the cost of a step. The parts of one message come one by one, and
// each has the usage of all.
func (t *transcript) readClaudeMessage(event jsontext.Value) {
	var data struct {
		Error   string `json:"error"`
		Message struct {
			ID    string      `json:"id"`
			Usage claudeUsage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	switch data.Error {
	case "authentication_failed":
		t.blocker = loggedOut
	case "rate_limit":
		t.blocker = throttled // the result may say more
	case "billing_error":
		t.blocker = limited
	case "":
		if t.blocker == throttled || t.blocker == limited {
			t.blocker = none // it went on
		}
	}
	t.step(data.Message.ID, data.Message.Usage.tokens())
}

func (t *transcript) hearClaudeResult(event jsontext.Value) {
	var data struct {
		Subtype string         `json:"subtype"`
		IsError bool           `json:"is_error"`
		Result  string         `json:"result"`
		Errors  []string       `json:"errors"`
		Session string         `json:"session_id"`
		Cost    jsontext.Value `json:"total_cost_usd"`
		Usage   *claudeUsage   `json:"usage"`
		Status  int            `json:"api_error_status"`

		// StopReason is null when the stream of the last answer ended before its message_stop, as version
		// 2.1.197 prints it: https://platform.claude.com/docs/en/build-with-claude/streaming.
		StopReason jsontext.Value `json:"stop_reason"`

		Denied []struct {
			ID    string         `json:"tool_use_id"`
			Tool  string         `json:"tool_name"`
			Input jsontext.Value `json:"tool_input"`
		} `json:"permission_denials"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	t.done, t.text = true, data.Result
	setDefault(&t.session, data.Session)
	t.cents = cents(data.Cost)
	for _, d := range data.Denied {
		failed := t.uses.failed[d.ID]
		t.uses.deny(denial{d.Tool, shortInput(d.Input), cmp.Or(failed.Why, "Claude Code denied it"), failed.order, ""})
	}
	if u := data.Usage; u != nil && (u.tokens() > 0 || t.stepped == 0) { // 0 also after an answer without a stream
		t.spent(u.tokens())
	}
	if !data.IsError && data.Subtype == "success" {
		t.blocker = none // earlier problems were overcome
		if data.StopReason.Kind() == 'n' && data.Result != "" {
			t.fail("the answer of the provider was cut short")
		}
		return
	}
	t.fail(cmp.Or(append(data.Errors, data.Result, data.Subtype, "it did not say why")...))
	switch refused := t.format.refusedWith(data.Status, t.message); {
	case t.resets > 0 && data.Status == 429:
		t.blocker = limited
	case refused != none:
		t.blocker = refused
	case t.format.blockerIn(t.message) != none:
		t.blocker = t.format.blockerIn(t.message)
	}
}

// readClaudeBlocks reads calls of tools and their results. A call that permissions deny is in
// permission_denials of the result; one of a tool that --tools left out has only an error.
func (t *transcript) readClaudeBlocks(event jsontext.Value) {
	var data struct {
		Message struct {
			Content []struct {
				Type    string         `json:"type"`
				ID      string         `json:"id"`
				Name    string         `json:"name"`
				Input   jsontext.Value `json:"input"`
				Use     string         `json:"tool_use_id"`
				Content jsontext.Value `json:"content"`
				IsError bool           `json:"is_error"`
			} `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	for _, b := range data.Message.Content {
		switch {
		case b.Type == "tool_use":
			t.acted = true
			t.uses.call(b.ID, b.Name, b.Input)
		case b.Type == "tool_result":
			t.claudeToolResult(b.Use, b.Content, b.IsError)
		}
	}
}

func (t *transcript) claudeToolResult(id string, content jsontext.Value, isError bool) {
	use := t.uses.take(id)
	if !isError {
		t.uses.succeed(use.tool)
		return
	}
	var words string
	_ = json.Unmarshal(content, &words, lenient) // a list of parts has no words of ours
	if missing := "No such tool available: " + use.tool; isChange(use.tool) && strings.Contains(words, missing) &&
		strings.HasPrefix(words, "<tool_use_error>") {
		t.uses.deny(denial{use.tool, use.input, "the tool is not among those that the run may use", t.uses.order, ""})
		return
	}
	if t.uses.failed == nil {
		t.uses.failed = map[string]denial{}
	}
	if len(t.uses.failed) < maxPending {
		words, _, _ = strings.Cut(words, " IMPORTANT: ") // which is for the model
		t.uses.failed[id] = denial{Why: short(words), order: t.uses.order}
	}
}
