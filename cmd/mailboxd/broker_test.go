package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func init() {
	agents["toolserver"] = toolServer
	agents["toolcaller"] = toolCaller
}

// toolServer is an MCP server. It appends the name of each tool that is called to the file log of the directory STUB_DIR, and
// has the content of its file description as the description of its tools.
func toolServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "stub", Version: "1"}, nil)
	said := func(name string, text func() string) {
		schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
		s.AddTool(&mcp.Tool{Name: name, InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f, err := os.OpenFile(os.Getenv("STUB_DIR")+"/log", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			fmt.Fprintln(f, name)
			var in struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text + text()}}}, nil
		})
	}
	said("echo", func() string { return "" })
	said("hidden", func() string { return "" })
	said("secret", func() string { return "the secret is " + os.Getenv("STUB_SECRET") })
	said("large", func() string { return strings.Repeat("x", 2<<20) })
	said("slow", func() string {
		_ = os.WriteFile(os.Getenv("STUB_DIR")+"/broker.pid", []byte(strconv.Itoa(os.Getppid())), 0o600)
		time.Sleep(time.Hour) // until its broker is gone, or ends it
		return ""
	})
	said("dies", func() string { fmt.Fprintln(os.Stderr, "last words"); os.Exit(3); return "" })
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			if listed, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				text, _ := os.ReadFile(os.Getenv("STUB_DIR") + "/description")
				own := *listed
				own.Tools = nil
				for _, tool := range listed.Tools {
					changed := *tool
					changed.Description = string(text)
					own.Tools = append(own.Tools, &changed)
				}
				return &own, nil
			}
			return result, err
		}
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// bearer adds the token of a run to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// toolCaller is an agent that uses its tools: agent toolcaller STEP... A step is list, run SCRIPT, or TOOL TEXT, and each prints a line.
// The text "number" stands for an argument that fits no schema.
func toolCaller() {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if os.Getenv("MAILBOX_MCP_URL") == "" {
		fmt.Println("no tools")
		return
	}
	token, err := os.ReadFile(os.Getenv("MAILBOX_MCP_TOKEN_FILE"))
	fail(err)
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: os.Getenv("MAILBOX_MCP_URL"), HTTPClient: &http.Client{Transport: bearer(strings.TrimSpace(string(token)))}, MaxRetries: -1,
	}, nil)
	fail(err)
	for _, step := range os.Args[2:] {
		if step == "list" {
			var names []string
			for tool, err := range session.Tools(ctx, nil) {
				fail(err)
				names = append(names, tool.Name)
			}
			fmt.Println("tools:", strings.Join(names, " "))
			continue
		}
		tool, text, _ := strings.Cut(step, " ")
		if tool == "run" {
			out, err := exec.Command("/bin/sh", text).CombinedOutput()
			fmt.Println(string(out), err)
			continue
		}
		arguments := map[string]any{"text": text}
		if text == "number" {
			arguments["text"] = 7
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			fmt.Println(tool+": error:", err)
			continue
		}
		for _, content := range result.Content {
			if text, ok := content.(*mcp.TextContent); ok {
				fmt.Println(tool+":", result.IsError, text.Text)
			}
		}
	}
}
