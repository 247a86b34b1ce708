package external

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// serveWord makes this test binary an MCP server. It counts the calls in a file, a line each.
const serveWord = "serve-mcp"

func newServer(count string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "stub", Version: "1"}, nil)
	type in struct {
		Question string `json:"question"`
		Details  any    `json:"details,omitempty"`
	}
	add := func(name string, do func(in) (*mcp.CallToolResult, any, error)) {
		tool := &mcp.Tool{Name: name, Description: name}
		mcp.AddTool(server, tool, func(_ context.Context, _ *mcp.CallToolRequest, asked in) (*mcp.CallToolResult, any, error) {
			if f, err := os.OpenFile(count, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				fmt.Fprintf(f, "%s %s\n", name, asked.Question)
				f.Close()
			}
			return do(asked)
		})
	}
	text := func(words string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
	}
	add("answer", func(a in) (*mcp.CallToolResult, any, error) {
		return nil, map[string]any{"summary": "about " + a.Question, "details": a.Details}, nil
	})
	add("words", func(in) (*mcp.CallToolResult, any, error) { return text("in words"), nil, nil })
	add("fail", func(in) (*mcp.CallToolResult, any, error) { return nil, nil, fmt.Errorf("no such thing") })
	add("picture", func(in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}}, nil, nil
	})
	add("variables", func(in) (*mcp.CallToolResult, any, error) { return text(strings.Join(os.Environ(), "\n")), nil, nil })
	add("die", func(in) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "it was too much")
		os.Exit(9)
		return nil, nil, nil
	})
	add("leave", func(in) (*mcp.CallToolResult, any, error) {
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			return nil, nil, err
		}
		return text(strconv.Itoa(child.Process.Pid)), nil, nil
	})
	return server
}

func serveStub() {
	if err := newServer(os.Args[2]).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// toolOf is a tool of the stub, and counted returns its calls so far.
func toolOf(t *testing.T, name string) (s task.Service, counted func() []string) {
	t.Helper()
	count := filepath.Join(t.TempDir(), "count")
	s = task.Service{
		Server: "stub", Tool: name, Command: []string{os.Args[0], serveWord, count},
		Arguments: jsontext.Value(`{"question":"{{.Description}} of {{.TaskID}}"}`),
	}
	return s, func() []string {
		text, _ := os.ReadFile(count)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func withEnvironment(entries ...string) func(*Options) {
	return func(o *Options) { o.Env = append(os.Environ(), entries...) }
}

func TestAToolIsCalledOnceAndWhatItReturnsIsTheAnswer(t *testing.T) {
	for name, want := range map[string]Result{
		"answer":    {Answer: jsontext.Value(`{"details":null,"summary":"about a task of t1"}`)},
		"words":     {Text: "in words"},
		"fail":      {Kind: envelope.AgentError, Message: "the tool fail of stub failed: no such thing"},
		"picture":   {Kind: envelope.OutputInvalid, Message: "the tool picture of stub returned no text and no structured content"},
		"not there": {Kind: envelope.AgentUnsuitable},
	} {
		service, counted := toolOf(t, name)
		got := run(t, newRun(t), service, withEnvironment())
		same := string(got.Answer) == string(want.Answer) && got.Text == want.Text && got.Kind == want.Kind
		if !same || !strings.Contains(got.Message, want.Message) {
			t.Errorf("%s: result = %+v; want %+v", name, got, want)
		}
		calls := []string{name + " a task of t1"}
		if name == "not there" {
			calls = []string{""}
		}
		if got := counted(); !slices.Equal(got, calls) {
			t.Errorf("%s: calls = %q; want %q", name, got, calls)
		}
	}
}

func TestAServerThatDiesIsNamedWithItsLastWords(t *testing.T) {
	service, counted := toolOf(t, "die")
	got := run(t, newRun(t), service, withEnvironment())
	expect(t, "die", got, envelope.RunLost, "its standard error ends with: it was too much")
	expect(t, "die", got, envelope.RunLost, "isn't idempotent")
	if n := len(counted()); n != 1 {
		t.Errorf("%d calls; want one", n)
	}
	service.Command = []string{"sh", "-c", "echo no key >&2; exit 1"}
	expect(t, "no server", run(t, newRun(t), service, withEnvironment()), envelope.AgentError, "no key")
	service.Command = []string{"/no/such/server"}
	expect(t, "no program", run(t, newRun(t), service, withEnvironment()), envelope.AgentError, "no such file")
}

func TestAServerGetsNoVariableOfTheRun(t *testing.T) {
	service, _ := toolOf(t, "variables")
	got := run(t, newRun(t), service, withEnvironment("MAILBOX_RESULT_FILE=/r", "MAILBOX_RUN_DIR=/d", "GIVEN=yes"))
	given := strings.Contains(got.Text, "GIVEN=yes") && strings.Contains(got.Text, "MAILBOX_RUN_DIR=/d")
	if !given || strings.Contains(got.Text, "MAILBOX_RESULT_FILE") {
		t.Errorf("the server has %s; want what it is given, the mark of the run, and no file of it", got.Text)
	}
}

func TestNoProcessOfAServerOutlivesTheCall(t *testing.T) {
	service, _ := toolOf(t, "leave")
	got := run(t, newRun(t), service, withEnvironment())
	pid, err := strconv.Atoi(got.Text)
	if err != nil {
		t.Fatalf("result = %+v; want the process that was left", got)
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // gone, or dead and not yet waited for
	if err := syscall.Kill(pid, 0); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %d lives: %s", pid, stat)
	}
}

func TestAKilledHostNeverLeadsToASecondCallUnlessItsAgentIsIdempotent(t *testing.T) {
	for _, step := range []string{"recorded", "sent", "answered", "printed"} {
		for _, idempotent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", step, idempotent), func(t *testing.T) {
				t.Parallel()
				service, counted := toolOf(t, "words")
				service.Idempotent = idempotent
				first := newRun(t)
				if out, killed := runProcess(t, first, "run-1", service, step); !killed {
					t.Fatalf("the host printed %q and wasn't killed", out)
				}
				second := newRun(t)
				if err := Carry(first, second); err != nil {
					t.Fatal(err)
				}
				out, _ := runProcess(t, second, "run-2", service, "")
				got := resultOf(t, out)
				if n := len(counted()); n > 1 && !idempotent {
					t.Errorf("%d calls; want one at most", n)
				}
				if idempotent != (got.Text == "in words") || !idempotent && got.Kind != envelope.RunLost {
					t.Errorf("second host: %+v", got)
				}
			})
		}
	}
}

func TestAServerWithAnAddressIsAskedWithTheToken(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	server := newServer(count)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret-t0ken" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer far.Close()
	service := task.Service{Server: "far", Tool: "answer", URL: far.URL, BearerEnv: "FAR_TOKEN", Arguments: jsontext.Value(`{"question":"x"}`)}
	got := run(t, newRun(t), service, func(o *Options) { o.Bearer = "s3cret-t0ken" })
	if string(got.Answer) != `{"details":null,"summary":"about x"}` {
		t.Errorf("result = %+v; want the answer", got)
	}
	if got = run(t, newRun(t), service, func(o *Options) { o.Bearer = "another-t0ken" }); got.Status != 401 {
		t.Errorf("another token: %+v; want 401", got)
	}
	tools, err := Tools(t.Context(), service, nil, "s3cret-t0ken")
	if err != nil || !slices.Contains(tools, "answer") {
		t.Errorf("Tools = %q, %v; want answer among them", tools, err)
	}
	other := httptest.NewServer(http.RedirectHandler(far.URL, http.StatusTemporaryRedirect))
	defer other.Close()
	service.URL = other.URL
	if got = run(t, newRun(t), service, func(o *Options) { o.Bearer = "s3cret-t0ken" }); got.Kind != envelope.PolicyViolation {
		t.Errorf("a redirect: %+v; want it refused", got)
	}
}
