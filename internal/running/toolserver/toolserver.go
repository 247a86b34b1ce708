// Package toolserver describes the tool broker of a run to the program of the run, as an MCP server in the
// words of the program.
//
// What others rely on:
//   - No text has the address, which isn't known before the run starts: the program, or the step that starts
//     it, replaces a reference.
//   - Only what Claude returns has the token, for a file with mode 0600. Other programs read TokenVariable.
//   - A program has the tools before it asks its model, and waits for a call as long as a person may take.
package toolserver

import (
	"fmt"
	"time"

	"mailboxd/internal/sandboxing/sandbox"
)

// Name is the name of the tool broker for a program. It differs from mailboxd, the name with which
// people enter the mailbox in the settings of their agents.
const Name = "mailboxd-tools"

// TokenVariable is the variable with the token of the run for a program that reads it from one.
const TokenVariable = "MAILBOX_MCP_TOKEN"

// How long a program waits for the tool broker. A person decides about a call in the time that
// acp.ask_timeout gives them, and the tool then has its own.
const (
	listPatience = time.Minute
	callPatience = 24 * time.Hour
)

// Token returns the variable with a token, as NAME=value.
func Token(token string) []string { return []string{TokenVariable + "=" + token} }

// Claude returns the file for --mcp-config of Claude Code: https://code.claude.com/docs/en/mcp. Without a
// token, it has no server. Claude Code replaces the variable in it.
func Claude(token string) string {
	if token == "" {
		return `{"mcpServers":{}}` + "\n"
	}
	const text = `{"mcpServers":{%q:{"type":"http","url":%q,"headers":{"Authorization":"Bearer %s"},"alwaysLoad":true,"timeout":%d}}}`
	return fmt.Sprintf(text+"\n", Name, sandbox.ToolsReference, token, callPatience.Milliseconds())
}

// ClaudeWaits returns the variables with which Claude Code waits longer than 5 seconds for the tools, and
// than 5 minutes for a call without a sign of progress. The names are in the program, version 2.1.197.
func ClaudeWaits(string) []string {
	return []string{
		fmt.Sprintf("MCP_CONNECT_TIMEOUT_MS=%d", listPatience.Milliseconds()),
		"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT=0", "MCP_CONNECTION_NONBLOCKING=false",
	}
}

// Codex returns a value for -c of Codex: https://developers.openai.com/codex/mcp. Codex waits for the tools
// of a required server before it asks its model. The broker decides about the calls, and codex exec has
// no one to ask.
func Codex() string {
	return fmt.Sprintf(`mcp_servers.%s={url=%q, bearer_token_env_var=%q, required=true, startup_timeout_sec=%d, tool_timeout_sec=%d, `+
		`default_tools_approval_mode="approve"}`,
		Name, sandbox.ToolsReference, TokenVariable, int(listPatience.Seconds()), int(callPatience.Seconds()))
}

// OpenCode returns the section mcp of the settings of opencode, which replaces the variables:
// https://opencode.ai/docs/config#env-vars.
func OpenCode() map[string]any {
	return map[string]any{Name: map[string]any{
		"type": "remote", "url": "{env:" + sandbox.ToolsVariable + "}", "oauth": false,
		"headers": map[string]string{"Authorization": "Bearer {env:" + TokenVariable + "}"},
		"timeout": callPatience.Milliseconds(),
	}}
}
