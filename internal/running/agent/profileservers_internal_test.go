package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/services"
	"mailboxd/internal/running/toolserver"
)

// The token is in a file alone, and the tools of the broker are not among those of the program.
func TestClaudeCodeGetsTheToolBrokerByAFile(t *testing.T) {
	b := Binding{ID: "a", Profile: Claude, Servers: []services.Server{{ID: "docs"}}}.Filled()
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
	if err := json.Unmarshal([]byte(toolserver.Claude("secret")), &file); err != nil {
		t.Fatal(err)
	}
	s := file.Servers["mailboxd-tools"]
	if s.Type != "http" || s.URL != "${MAILBOX_MCP_URL}" || s.Headers["Authorization"] != "Bearer secret" {
		t.Errorf("the file has the servers %+v; want the tool broker", file.Servers)
	}
}

// The address is known when the program starts, and the token is in a variable alone.
func TestCodexAndOpenCodeGetTheToolBrokerWithoutItsTokenInAnArgument(t *testing.T) {
	j := task.Job{Dir: "/runs/1", Terms: task.Terms{Tools: []string{"mcp:docs/*"}}}
	codex := Binding{ID: "a", Profile: Codex, Servers: []services.Server{{ID: "docs"}}}.Filled()
	want := `mcp_servers.mailboxd-tools={url="${MAILBOX_MCP_URL}", bearer_token_env_var="MAILBOX_MCP_TOKEN", required=true, ` +
		`startup_timeout_sec=60, tool_timeout_sec=86400, default_tools_approval_mode="approve"}`
	if got := codex.terms()(j); !slices.Contains(got, want) {
		t.Errorf("Codex has the flags %q; want %s", got, want)
	}
	spec := runner.Spec{Argv: append([]string{"codex", "exec"}, codex.terms()(j)...)}
	agents, err := New([]Binding{codex}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := agents.Lookup("a")
	err = withoutBroker(&spec, j, g)
	if argv := strings.Join(spec.Argv, " "); err != nil || strings.Contains(argv, "mcp_servers") || !strings.HasSuffix(argv, " -") {
		t.Errorf("without a broker, Codex is run as %q, %v; want no server", spec.Argv, err)
	}

	other := `OPENCODE_CONFIG_CONTENT={"mcp":{"own":{"type":"local"}},"model":"m"}`
	opencode := Binding{ID: "a", Profile: OpenCode, Servers: codex.Servers}.Filled()
	text, err := opencode.rulesFor(j).addTo([]string{other})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"mcp":{"mailboxd-tools":{"headers":{"Authorization":"Bearer {env:MAILBOX_MCP_TOKEN}"},"oauth":false,"timeout":86400000,` +
			`"type":"remote","url":"{env:MAILBOX_MCP_URL}"},"own":{"type":"local"}}`,
		`"mailboxd-tools_*":"allow"`, `"model":"m"`, `"*":"deny"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("opencode has the settings %s; want %s", text, part)
		}
	}
	for profile, want := range map[Profile]string{Codex: "MAILBOX_MCP_TOKEN=secret", OpenCode: "MAILBOX_MCP_TOKEN=secret"} {
		if got := recipes[profile].brokerEnv("secret"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s gets the variables %q; want %s", profile, got, want)
		}
	}
}
