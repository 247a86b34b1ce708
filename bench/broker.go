package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/external"
)

// playTools makes this program an MCP server with one tool, which returns its arguments.
const playTools = "play-tools"

// brokeredCalls is the number of calls of a tool, one after the other.
const brokeredCalls = 1000

// offerTools serves the tool.
func offerTools(ctx context.Context) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	return s.Run(ctx, &mcp.StdioTransport{})
}

// brokerCalls measures calls of a tool without and with the tool broker of a run.
func brokerCalls(ctx context.Context, l *lab) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	rows := []row{
		{who: "call of a tool, p50", tasks: brokeredCalls, unit: "ms"}, {who: "through the broker, p50", tasks: brokeredCalls, unit: "ms"},
		{who: "through the broker, p99", tasks: brokeredCalls, unit: "ms"}, {who: "RSS of the broker", unit: "MB"},
	}
	for range l.rounds {
		err := l.in(ctx, func(dir string) error {
			direct, err := timeCalls(ctx, "echo", task.Service{Server: "bench", Command: []string{self, playTools}}, "")
			if err != nil {
				return err
			}
			b, err := startBroker(ctx, l.tools.mailboxd, self, dir)
			if err != nil {
				return err
			}
			defer b.stop()
			through, err := timeCalls(ctx, "bench__echo", task.Service{Server: "mailboxd", URL: b.url}, brokerToken)
			if err != nil {
				return err
			}
			now, err := status(b.cmd.Process.Pid)
			for i, figure := range []float64{quantile(direct, 0.5), quantile(through, 0.5), quantile(through, 0.99), now.rss / 1e6} {
				rows[i].got = append(rows[i].got, figure)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// timeCalls calls a tool of a server again and again, and returns how long each call took, in ms.
func timeCalls(ctx context.Context, tool string, of task.Service, bearer string) (took []float64, err error) {
	server, err := external.Connect(ctx, of, os.Environ(), bearer)
	if err != nil {
		return nil, err
	}
	defer server.End()
	for n := range brokeredCalls {
		want := fmt.Sprintf(`{"text":"%d"}`, n)
		began := time.Now()
		result, err := server.Call(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(want)})
		took = append(took, time.Since(began).Seconds()*1000)
		if err != nil {
			return nil, err
		}
		if text, ok := result.Content[0].(*mcp.TextContent); !ok || result.IsError || text.Text != want {
			return nil, fmt.Errorf("call %d of %s returned %+v; want %s", n, tool, result.Content[0], want)
		}
	}
	return took, nil
}

// A runningBroker is a tool broker without a run.
type runningBroker struct {
	cmd *exec.Cmd
	url string
}

// brokerToken is what requests to it have.
const brokerToken = "token-of-a-measure"

// startBroker starts a tool broker, whose only server is this program.
func startBroker(ctx context.Context, mailboxd, self, dir string) (*runningBroker, error) {
	config, err := broker.Config{
		Dir: dir, Token: brokerToken, Listen: "127.0.0.1:0", Limit: brokeredCalls, Tools: []string{"mcp:bench/echo"}, Known: dir + "/known",
		Servers: []broker.Server{{Service: task.Service{Server: "bench", Command: []string{self, playTools}}, Env: os.Environ()}},
	}.Encode()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, mailboxd, "broker")
	cmd.Stdin, cmd.Stderr = strings.NewReader(config), os.Stderr
	url, err := startServer(cmd)
	return &runningBroker{cmd: cmd, url: url}, err
}

func (b *runningBroker) stop() { endServer(b.cmd) }
