package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
)

// CallArgument, after the name of the command, makes a process the caller of an Asked.
const CallArgument = "call"

// Asked are the calls for which an agent asks in messages.
type Asked struct {
	From  int64       `json:"from"` // how long CallsFile was before them, in bytes
	Calls []AskedCall `json:"calls"`
}

// An AskedCall is one of them.
type AskedCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"` // "": the only one of the server that the run may use
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// callAsked makes the calls of an Asked one after the other, so that what comes of them is recorded in
// their order. It ends at the first one that the broker doesn't answer.
func callAsked() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var asked Asked
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return fmt.Errorf("read calls from standard input: %w", err)
	}
	token, err := os.ReadFile(os.Getenv(sandbox.ToolsTokenVariable))
	if err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	at := task.Service{Server: runner.BrokerName, URL: os.Getenv(sandbox.ToolsVariable)}
	c, err := external.Connect(ctx, at, nil, strings.TrimSpace(string(token)))
	if err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	defer c.End()
	for _, call := range asked.Calls {
		if err := call.make(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// make makes a call. What is refused is recorded as what is answered, so that only a broker that
// doesn't answer is an error.
func (a AskedCall) make(ctx context.Context, c *external.Client) error {
	name := a.Server + divider + a.Tool
	if a.Tool == "" {
		tools, err := c.Tools(ctx)
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		name = onlyTool(name, tools)
	}
	p := &mcp.CallToolParams{Name: name}
	if len(a.Arguments) > 0 {
		p.Arguments = a.Arguments
	}
	_, err := c.Call(ctx, p)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
		return nil
	}
	return err
}

// onlyTool returns the only tool whose name begins with a prefix; for none, or several, the prefix, which
// is no tool.
func onlyTool(prefix string, tools []*mcp.Tool) string {
	name, found := prefix, 0
	for _, tool := range tools {
		if strings.HasPrefix(tool.Name, prefix) {
			name = tool.Name
			found++
		}
	}
	if found > 1 {
		return prefix
	}
	return name
}
