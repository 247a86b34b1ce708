package acp

import (
	"os"
	"regexp"
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

// brokeredTool is how programs name a tool of the tool broker when they ask about a call.
var brokeredTool = regexp.MustCompile(`^(mcp__)?` + toolserver.Name + `_{1,2}[A-Za-z0-9_.-]+$`)

// decidesBroker reports whether a question is about a call of a tool of the tool broker, which decides
// about it itself. What was said of the call before does not count.
func (h *host) decidesBroker(asked toolCall) bool {
	return h.opts.ToolsURL != "" && text(asked.Kind) == string(sdk.ToolKindOther) && brokeredTool.MatchString(text(asked.Title))
}
