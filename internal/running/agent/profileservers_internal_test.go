package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/external"
)

// The token is in a file alone, and the tools of the broker are not among those of the program.
func TestClaudeCodeGetsTheToolBrokerByAFile(t *testing.T) {
	b := Binding{ID: "a", Profile: Claude, Servers: []external.Server{{ID: "docs"}}}.Filled()
	terms := func(permission Permission, tools ...string) string {
		b.Permission = permission
		b.Command = b.Command[:1]
		b = b.Filled()
		return strings.Join(b.terms()(task.Job{Dir: "/runs/1", Terms: task.Terms{Tools: tools}}), " ")
	}
	for got, want := range map[string]string{
		terms("", "read", "mcp:docs/*"):          "--tools Read,Grep,Glob --mcp-config /runs/1/mcp.json --allowedTools Read,Grep,Glob,mcp__mailboxd-tools",
		terms(ReadOnly, "mcp:docs/find"):         "--tools  --mcp-config /runs/1/mcp.json --allowedTools mcp__mailboxd-tools",
		terms(Edit, "edit", "mcp:other/find"):    "--tools Edit,Write,NotebookEdit,mcp:other/find --allowedTools Edit,Write,NotebookEdit,mcp:other/find",
		terms(ReadOnly, "read", "mcp:docs/find"): "--tools Read,Grep,Glob --mcp-config /runs/1/mcp.json --allowedTools Read,Grep,Glob,mcp__mailboxd-tools",
	} {
		if got != want {
			t.Errorf("Claude Code has the flags\n%s\nwant\n%s", got, want)
		}
	}
	var file struct {
		Servers map[string]struct {
			Type, URL string
			Headers   map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(claudeServers("secret")), &file); err != nil {
		t.Fatal(err)
	}
	s := file.Servers["mailboxd-tools"]
	if s.Type != "http" || s.URL != "${MAILBOX_MCP_URL}" || s.Headers["Authorization"] != "Bearer secret" {
		t.Errorf("the file has the servers %+v; want the tool broker", file.Servers)
	}
}
