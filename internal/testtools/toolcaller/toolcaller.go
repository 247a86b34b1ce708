// Package toolcaller is an agent that uses the tools of its run. Its client of MCP is not the one of
// mailboxd, so that the tests of the tool broker don't try mailboxd against itself.
package toolcaller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/sandboxing/breakout"
)

// Main does some steps: list, run SCRIPT, search DIGEST DIR..., or TOOL TEXT. Each prints a line. A text that begins
// with { is the arguments of the tool; another one is its argument text, and "number" stands for one that fits no schema.
func Main(steps []string) error {
	if os.Getenv("MAILBOX_MCP_URL") == "" {
		fmt.Println("no tools")
		return nil
	}
	ctx := context.Background()
	session, err := connect(ctx)
	if err != nil {
		return err
	}
	for _, step := range steps {
		tool, text, _ := strings.Cut(step, " ")
		switch tool {
		case "list":
			if err := list(ctx, session); err != nil {
				return err
			}
		case "run":
			out, err := exec.Command("/bin/sh", text).CombinedOutput()
			fmt.Println(string(out), err)
		case "search":
			search(strings.Fields(text))
		default:
			call(ctx, session, tool, text)
		}
	}
	return nil
}

// bearer adds the token of a run to requests.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(ctx context.Context) (*mcp.ClientSession, error) {
	token, err := os.ReadFile(os.Getenv("MAILBOX_MCP_TOKEN_FILE"))
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: os.Getenv("MAILBOX_MCP_URL"), HTTPClient: &http.Client{Transport: bearer(strings.TrimSpace(string(token)))}, MaxRetries: -1,
	}, nil)
}

func list(ctx context.Context, session *mcp.ClientSession) error {
	var names []string
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	fmt.Println("tools:", strings.Join(names, " "))
	return nil
}

func call(ctx context.Context, session *mcp.ClientSession, tool, text string) {
	var arguments any = map[string]any{"text": text}
	switch {
	case text == "number":
		arguments = map[string]any{"text": 7}
	case strings.HasPrefix(text, "{"):
		arguments = json.RawMessage(text)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		fmt.Println(tool+": error:", err)
		return
	}
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			fmt.Println(tool+":", result.IsError, text.Text)
		}
	}
}

// search looks for the secret with a digest wherever an agent can look, and in some directories of mailboxd.
func search(args []string) {
	dirs := append(args[1:], os.Getenv("MAILBOX_RUN_DIR"), ".")
	for _, f := range breakout.Search(breakout.Targets{Secret: args[0], Lists: dirs}) {
		fmt.Printf("%s: %v %s\n", f.Attempt, f.Broke, f.Why)
	}
}
