package agent

import (
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/acp"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/toolserver"
)

// Programs that speak the Agent Client Protocol. A host runs them, and asks before each call of a
// tool. ACP is the profile of any other one, whose command the binding names, and the format of the
// host.
const (
	ClaudeACP   Profile = "claude-acp"
	CodexACP    Profile = "codex-acp"
	GeminiACP   Profile = "gemini-acp"
	OpenCodeACP Profile = "opencode-acp"

	ACP = "acp"
)

// hostedPrograms are the profiles of the same programs without a host.
var hostedPrograms = map[Profile]Profile{ClaudeACP: Claude, CodexACP: Codex, GeminiACP: Gemini, OpenCodeACP: OpenCode}

// Asks reports whether the program of the profile asks before each call of a tool.
func (p Profile) Asks() bool { return recipes[p].host != nil }

// An acpHost is what the host of a program has to know.
type acpHost struct {
	mode   string        // of the session, in which the program asks; "" for none to set
	env    []string      // NAME=value: variables that the program always gets
	exempt task.CallKind // calls that it makes without asking, and that can't change anything; "": none
}

// variables are those of the host's program; none without a host.
func (h *acpHost) variables() []string {
	if h == nil {
		return nil
	}
	return h.env
}

// argv returns the command of the host for the command of its program, which has to be there.
func (h *acpHost) argv(command []string, resume string) ([]string, error) {
	program, err := findProgram(command[0])
	if err != nil {
		return nil, &runner.SpawnError{Command: command[0], Err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command = append([]string{program}, command[1:]...)
	return append([]string{self}, acp.Arguments(command, h.mode, resume)...), nil
}

// hostedProgram returns the path of the program in the command of a host; "" for another command.
func hostedProgram(argv []string) string {
	if at := slices.Index(argv, "--") + 1; len(argv) > 1 && argv[1] == acp.Name && at > 0 && at < len(argv) {
		return argv[at]
	}
	return ""
}

// claudeACPRecipe runs the adapter of Claude Code, version 0.101.0, whose own mode lets a model
// decide about permissions: https://github.com/agentclientprotocol/claude-agent-acp.
var claudeACPRecipe = recipe{
	title: "Claude Code over ACP", command: []string{"claude-agent-acp"}, stdin: Prompt, output: ACP,
	host: &acpHost{mode: "default"}, login: claudeRecipe.login, variables: claudeRecipe.variables, brokerEnv: toolserver.ClaudeWaits,
}

// codexACPRecipe runs the adapter of Codex, version 2.6.0. In its mode read-only, Codex runs commands
// in its own sandbox without asking, where they can't write, and asks to leave it:
// https://github.com/agentclientprotocol/codex-acp.
var codexACPRecipe = recipe{
	title: "Codex over ACP", command: []string{"codex-acp"}, stdin: Prompt, output: ACP,
	host: &acpHost{mode: "read-only", exempt: task.CallExecute}, login: codexRecipe.login, variables: codexRecipe.variables,
}

// geminiACPRecipe runs Gemini CLI, version 0.61.0. In a directory that it trusts, it obeys settings of
// the project that take its questions away:
// https://geminicli.com/docs/cli/trusted-folders.
var geminiACPRecipe = recipe{
	title: "Gemini CLI over ACP", command: []string{"gemini", "--acp"}, stdin: Prompt, output: ACP,
	host:  &acpHost{mode: "default", env: []string{"GEMINI_CLI_TRUST_WORKSPACE=false"}},
	login: geminiRecipe.login, variables: geminiRecipe.variables,
}

// openCodeACPRecipe runs opencode, version 1.18.33, as an agent of mailboxd whose permissions are
// stronger than those of the user and of the project.
var openCodeACPRecipe = recipe{
	title: "opencode over ACP", command: []string{"opencode", "acp"}, stdin: Prompt, output: ACP,
	host: &acpHost{mode: openCodeAgent}, rules: openCodeAsks, login: openCodeRecipe.login, variables: openCodeRecipe.variables,
}

// openCodeAsks has the agent of mailboxd ask for everything.
func openCodeAsks(grant, task.Job) *rules {
	return &rules{
		name: "opencode.json", env: "OPENCODE_CONFIG_CONTENT", add: addOpenCodeAgent,
		text: `{"agent":{"` + openCodeAgent + `":{"mode":"primary","permission":{"*":"ask"}}}}`,
	}
}

// readACP reads a line of a host: an update of a session, or the answer. An update is as the agent
// sent it, so that only a line without a method is the host's own.
func readACP(t *transcript, kind string, event jsontext.Value) {
	if kind == "result" && member(event, "method") == nil {
		t.readACPResult(event)
		return
	}
	var data struct {
		Params struct {
			Session string `json:"sessionId"`
			Update  struct {
				Kind string `json:"sessionUpdate"`
			} `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	setDefault(&t.session, data.Params.Session)
	t.acted = t.acted || data.Params.Update.Kind == "tool_call"
}

// readACPResult reads the last line of a host.
func (t *transcript) readACPResult(event jsontext.Value) {
	var data struct {
		Status  string `json:"status"`
		Text    string `json:"text"`
		Session string `json:"session_id"`
		Tokens  *int64 `json:"tokens"`
		Cost    *struct {
			Amount   jsontext.Value `json:"amount"`
			Currency string         `json:"currency"`
		} `json:"cost"`
		Error struct {
			Kind    envelope.Kind `json:"kind"`
			Message string        `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	t.done, t.text = true, data.Text
	if data.Session != "" {
		t.session = data.Session
	}
	if data.Tokens != nil {
		t.spent(*data.Tokens)
	}
	if data.Cost != nil && data.Cost.Currency == "USD" {
		t.cents = cents(data.Cost.Amount)
	}
	if data.Status == "ok" {
		return
	}
	switch data.Error.Kind {
	case "auth_required":
		t.blocker = loggedOut
	case envelope.AgentError: // its words may name what it waits for
	default:
		t.kind = data.Error.Kind
	}
	t.fail(data.Error.Message)
}
