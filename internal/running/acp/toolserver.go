package acp

import (
	"os"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"mailboxd/internal/running/toolserver"
)

// toolServers returns the MCP servers of a session: the tool broker of the run, if it has one. Without
// it, the agent would not have the tools that the task may use.
func (h *host) toolServers(can capabilities) ([]sdk.McpServer, error) {
	if h.opts.ToolsURL == "" {
		return []sdk.McpServer{}, nil
	}
	if !can.Servers.HTTP {
		return nil, failure(kindUnsuitable, "the agent takes no MCP server over HTTP, as which mailboxd offers the tools of MCP servers")
	}
	token, err := os.ReadFile(h.opts.ToolsToken)
	if err != nil {
		return nil, failure(kindUnsuitable, "read the token of the tool broker: %v", err)
	}
	header := sdk.HttpHeader{Name: "Authorization", Value: "Bearer " + strings.TrimSpace(string(token))}
	server := &sdk.McpServerHttpInline{Type: "http", Name: toolserver.Name, Url: h.opts.ToolsURL, Headers: []sdk.HttpHeader{header}}
	return []sdk.McpServer{{Http: server}}, nil
}
