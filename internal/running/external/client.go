package external

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/decisions/task"
)

// A Client is a connection to an MCP server for many calls. Its methods may be used concurrently.
type Client struct {
	server *session
	ending sync.Mutex
}

// Connect starts the server of a service or connects to it. A child gets the environment but for what
// it says of the run.
func Connect(ctx context.Context, s task.Service, env []string, bearer string) (*Client, error) {
	h := &host{Options: Options{Service: s, Env: env, Bearer: bearer}}
	if err := h.address(); err != nil {
		return nil, err
	}
	server, err := h.connect(ctx)
	c := &Client{server: server}
	if err != nil {
		return nil, c.Explain(err)
	}
	return c, nil
}

// Tools lists the tools of the server.
func (c *Client) Tools(ctx context.Context) (tools []*mcp.Tool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for tool, err := range c.server.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// Call calls a tool once.
func (c *Client) Call(ctx context.Context, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	return c.server.CallTool(ctx, p)
}

// Wait returns when the connection has ended.
func (c *Client) Wait() { _ = c.server.Wait() }

// Explain ends the server, and adds the end of its standard error to an error.
func (c *Client) Explain(err error) error {
	c.ending.Lock()
	defer c.ending.Unlock()
	return &explainedError{err, c.server.lastWords()}
}

// End ends the connection, and all processes of a server that is our child.
func (c *Client) End() {
	c.ending.Lock()
	defer c.ending.Unlock()
	c.server.end()
}

// An explainedError has the last words of a server.
type explainedError struct {
	error
	words string
}

func (e *explainedError) Error() string { return e.error.Error() + e.words }

// Unwrap returns the cause.
func (e *explainedError) Unwrap() error { return e.error }
