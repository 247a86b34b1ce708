package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolServer is an MCP server. It appends the name of each tool that is called to the file log of the directory STUB_DIR, and
// has the content of its file description as the description of its tools. Its arguments are the tools that it has; none: all.
func toolServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "stub", Version: "1"}, nil)
	said := func(name string, text func() string) {
		if only := os.Args[2:]; len(only) > 0 && !slices.Contains(only, name) {
			return
		}
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
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text + text()}}, IsError: name == "fails"}, nil
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
	said("fails", func() string { return ": no such page" })
	said("waits", func() string { // for the file go of STUB_DIR
		for {
			if _, err := os.Stat(os.Getenv("STUB_DIR") + "/go"); err == nil {
				return ""
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	said("dies", func() string { fmt.Fprintln(os.Stderr, "last words"); os.Exit(3); return "" })
	words := func(text string) { _ = os.WriteFile(os.Getenv("STUB_DIR")+"/description", []byte(text), 0o600) }
	said("changes", func() string { words("says something else"); return "" })
	said("announces", func() string {
		words("says something new")
		said("more", func() string { return "" }) // the server sends notifications/tools/list_changed
		return ""
	})
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
