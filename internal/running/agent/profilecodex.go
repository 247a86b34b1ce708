package agent

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/toolserver"
)

// codexRecipe runs Codex, version 0.169.0, which reads the prompt if its argument is "-". It has
// no flag for a budget.
var codexRecipe = recipe{
	title:   "Codex",
	command: []string{"codex", "exec", "--json", "--skip-git-repo-check"},
	model:   "--model",
	stdin:   Prompt,
	output:  Codex,
	terms:   codexTerms,
	holds:   codexHolds,

	brokerEnv: toolserver.Token,

	tools:      codexTools,
	others:     []string{"update_plan", "request_user_input", "multi_agent_v1", "get_goal", "create_goal", "update_goal"},
	ownSandbox: true,

	tested: "0.169.0",
	events: []string{ // codex-rs/exec/src/exec_events.rs
		"thread.started", "turn.started", "turn.completed", "turn.failed",
		"item.started", "item.updated", "item.completed", "error",
	},
	login: &login{ // https://developers.openai.com/codex/auth; a provider of its own can have another login
		variables: []string{"CODEX_API_KEY"},
		files:     []loginFile{{dir: "CODEX_HOME", below: ".codex", name: "auth.json"}},
		unsure:    []loginFile{{dir: "CODEX_HOME", below: ".codex", name: "config.toml", words: "model_provider"}},
		command:   "codex login", key: "CODEX_API_KEY",
	},

	// https://developers.openai.com/codex/auth and https://developers.openai.com/codex/config-reference
	variables: []string{"CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_HOME"},
}

// codexTools are those of codex-rs/core/src/tools. Codex reads files with commands.
var codexTools = toolGroups{
	ReadTools: {"view_image"}, EditTools: {"apply_patch"}, CommandTools: {"exec_command", "write_stdin", "shell"}, WebTools: {"web_search"},
}

// codexTerms passes the sandbox for the commands of the model
// (https://developers.openai.com/codex/agent-approvals-security), or takes the tool for commands
// away. codex features list has the names of features. In bubblewrap, the sandbox around Codex holds
// what writes, and Codex makes none: danger-full-access is for a sandbox that another program made
// (https://developers.openai.com/codex/agent-approvals-security, and codex exec --help of version
// 0.169.0). A run that only reads stays in both.
func codexTerms(g grant, _ task.Job) []string {
	var flags []string
	writes := "workspace-write"
	if g.enclosed {
		writes = "danger-full-access"
	}
	switch {
	case g.tools == nil && g.permission == Edit:
		flags = append(flags, "--sandbox", writes)
	case g.tools != nil:
		groups := codexTools.in(g.tools)
		mode := "read-only"
		if groups[EditTools] {
			mode = writes
		}
		flags = append(flags, "--sandbox", mode)
		if !groups[ReadTools] && !groups[EditTools] && !groups[CommandTools] {
			flags = append(flags, "--disable", "shell_tool", "--disable", "unified_exec")
		}
		if !groups[WebTools] {
			flags = append(flags, "-c", "web_search=disabled")
		}
	}
	if g.brokered {
		flags = append(flags, "-c", toolserver.Codex())
	}
	return append(flags, "-")
}

// codexHolds reports whether Codex has no more than the tools of a list: it reads and edits with
// commands, which its sandbox holds.
func codexHolds(tools []string) bool {
	groups := codexTools.in(tools)
	return groups[CommandTools] || !groups[ReadTools] && !groups[EditTools]
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
	case "item.started", "item.completed":
		t.readCodexItem(member(event, "item"))
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

// codexWordItems are the items that use no tool: codex-rs/exec/src/exec_events.rs.
var codexWordItems = []string{"agent_message", "reasoning", "todo_list", "error"}

// readCodexItem reads a message of the model, or the end of a call. A command that its read-only
// sandbox keeps from writing fails, with the kernel's words in its output.
func (t *transcript) readCodexItem(raw jsontext.Value) {
	var item struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Status  string `json:"status"`
		Command string `json:"command"`
		Output  string `json:"aggregated_output"`
	}
	if json.Unmarshal(raw, &item, lenient) != nil {
		return
	}
	t.acted = t.acted || !slices.Contains(codexWordItems, item.Type)
	switch {
	case item.Type == "agent_message":
		t.text = item.Text // the last one is the answer
	case item.Type == "file_change" && item.Status == "completed":
		t.uses.succeed("apply_patch")
	case item.Type == "command_execution" && item.Status == "completed":
		t.uses.succeed("exec_command")
	case item.Type == "command_execution" && item.Status == "failed" && strings.Contains(item.Output, ": Read-only file system"):
		input, err := json.Marshal(map[string]string{"command": item.Command}, json.Deterministic(true))
		if err != nil {
			return // a command with another encoding than UTF-8
		}
		t.uses.order++
		t.uses.deny(denial{"exec_command", shortInput(input), "its sandbox lets it only read there", t.uses.order, EditTools})
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

// maxCodexLog limits how much of standard error is read for rejected calls, in bytes from its end.
const maxCodexLog = 256 << 10

// codexRejection matches a line of Codex's log about a call that its sandbox or its rules reject,
// or of a tool that it doesn't offer.
// There is no event for it (codex-rs/core/src/tools, version 0.169.0).
var codexRejection = regexp.MustCompile(`ERROR codex_core::tools::router: error=(?:.*rejected.*|unsupported call: (exec_command|shell|apply_patch))$`)

// readCodexLog reads the rejected calls from standard error. Their order is unknown among
// the other calls, so none of those makes up for them.
func (t *transcript) readCodexLog(dir string) {
	f, err := openRegular(dir, runner.StderrFile)
	if err != nil {
		return
	}
	defer f.close()
	offset := max(0, f.size-maxCodexLog)
	text, err := f.read(offset, maxCodexLog)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		m := codexRejection.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		tool, why := m[1], "Codex does not offer the tool"
		if tool == "" {
			_, why, _ = strings.Cut(m[0], "error=")
			tool = "exec_command"
		}
		if strings.HasPrefix(why, "patch rejected") {
			tool = "apply_patch"
		}
		t.uses.deny(denial{tool, nil, strings.ToValidUTF8(why, "\uFFFD"), math.MaxInt, ""})
	}
}
