package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/external"
)

// serverWord is the argument that makes this test binary an MCP server.
const serverWord = "play-server"

// startsVariable has the name of a file to which a server adds its process id when it starts.
const startsVariable = "BROKER_TEST_STARTS"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serverWord {
		playServer()
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == brokerWord {
		if err := broker.Main(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mebibyte is much for a line.
var mebibyte = strings.Repeat("x", 1<<20)

// misdeeds are tools of a server that does wrong. They have no answer but what is said here.
var misdeeds = map[string]func() string{
	"echo":      func() string { return "echo" },
	"hangs":     func() string { select {} },
	"dies":      func() string { fmt.Fprintln(os.Stderr, "last words"); os.Exit(3); return "" },
	"floods":    func() string { flood(os.Stderr, 16); return "flooded" },
	"drowns":    func() string { flood(os.Stderr, 16); fmt.Fprintln(os.Stderr, "last words"); os.Exit(3); return "" },
	"garbles":   func() string { fmt.Println(`{"jsonrpc": nonsense`); select {} },
	"mumbles":   func() string { fmt.Println(`Server is ready.`); select {} },
	"stretches": func() string { flood(os.Stdout, 32); select {} },
}

func flood(f *os.File, times int) {
	for range times {
		_, _ = f.WriteString(mebibyte) // its reader may be gone
	}
}

func playServer() {
	f, err := os.OpenFile(os.Getenv(startsVariable), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	s := mcp.NewServer(&mcp.Implementation{Name: "stub", Version: "1"}, nil)
	for name, do := range misdeeds {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		s.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: do()}}}, nil
		})
	}
	s.AddTool(&mcp.Tool{Name: "counts", InputSchema: json.RawMessage(`{"type":"object"}`)}, count)
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// A rig is a broker with that server, as its agent sees it.
type rig struct {
	t      *testing.T
	dir    string
	url    string
	client *external.Client
}

// newRig starts a broker. It ends with the test, with all servers.
func newRig(t *testing.T, change func(*broker.Config)) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: t.TempDir()}
	c := broker.Config{Dir: r.dir, Token: "token", Tools: []string{"mcp:stub/*"}, Servers: []broker.Server{{
		Service: task.Service{Server: "stub", Command: []string{self, serverWord}}, Env: []string{startsVariable + "=" + r.dir + "/starts"},
	}}}
	if change != nil {
		change(&c)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := broker.Serve(ctx, c, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(stop)
	r.url = "http://" + l.Addr().String() + "/mcp"
	if r.client, err = external.Connect(ctx, task.Service{Server: "mailboxd", URL: r.url}, nil, c.Token); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.End)
	return r
}

// call calls a tool of the server, and returns what the agent reads, and whether that is an error.
func (r *rig) call(tool string) (text string, failed bool) {
	r.t.Helper()
	return r.callWith(tool, `{}`)
}

// callWith is call with arguments.
func (r *rig) callWith(tool, arguments string) (text string, failed bool) {
	r.t.Helper()
	result, err := r.client.Call(r.t.Context(), &mcp.CallToolParams{Name: "stub__" + tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		r.t.Error(err)
		return "", true
	}
	for _, content := range result.Content {
		if c, ok := content.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, result.IsError
}

// wantFailure calls a tool, and expects an error that says all of some words, and that it is in the record.
func (r *rig) wantFailure(tool, as string, words ...string) string {
	r.t.Helper()
	text, failed := r.call(tool)
	if !failed {
		r.t.Errorf("%s returned %.200q; want an error", tool, text)
	}
	for _, want := range append(words, "mailboxd: stub__"+tool+": ") {
		if !strings.Contains(text, want) {
			r.t.Errorf("%s failed with %.500q; want %q in it", tool, text, want)
		}
	}
	recorded := r.recorded(as)
	if last := len(recorded) - 1; last < 0 || recorded[last].Tool != "stub/"+tool || !strings.HasSuffix(text, recorded[last].Why) {
		r.t.Errorf("the record has %+v; want %s with what the agent was told", recorded, tool)
	}
	return text
}

// wantEcho expects that the server can be used.
func (r *rig) wantEcho() {
	r.t.Helper()
	if text, failed := r.call("echo"); failed || text != "echo" {
		r.t.Errorf("echo returned %.500q; want the echo", text)
	}
}

// recorded returns what the record has of a kind, such as called or refused.
func (r *rig) recorded(kind string) (all []task.ToolUse) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, broker.CallsFile))
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var entry map[string]task.ToolUse
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			r.t.Fatal(err)
		}
		if use, ok := entry[kind]; ok {
			all = append(all, use)
		}
	}
	return all
}

// starts returns the process ids of the server, in their order.
func (r *rig) starts() (all []int) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "starts"))
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}
