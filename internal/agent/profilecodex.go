package agent

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/runner"
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
	allow:   allowCodex,

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

// maxCodexLog limits how much of standard error is read for rejected calls, in bytes from its end.
const maxCodexLog = 256 << 10

// codexRejection matches a line of Codex's log about a call that its sandbox or its rules reject.
// There is no event for it (codex-rs/core/src/tools, version 0.169.0). What a command in its
// read-only sandbox can't write is the failure of that command, and not in its log.
var codexRejection = regexp.MustCompile(`ERROR codex_core::tools::router: error=(.*rejected.*)$`)

// readCodexLog reads the rejected calls from standard error. Nobody knows their order among
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
		tool := "exec_command"
		if strings.HasPrefix(m[1], "patch rejected") {
			tool = "apply_patch"
		}
		t.uses.deny(denial{tool, nil, strings.ToValidUTF8(m[1], "\uFFFD"), math.MaxInt})
	}
}

// allowCodex names the sandbox of Codex: https://developers.openai.com/codex/agent-approvals-security.
func allowCodex(b Binding, _ task.Job, _ []string) string {
	return fmt.Sprintf("set exec: {command: [%s, --sandbox, workspace-write, \"-\"]} of agent %q", strings.Join(b.Command, ", "), b.ID)
}
