package external

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/dial"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/services"
)

// connectTimeout limits the time until a server has said what it can do.
const connectTimeout = 30 * time.Second

// lingering is how long a server may take to end, and then its other processes.
const lingering = 2 * time.Second

// A session is a connection to an MCP server.
type session struct {
	*mcp.ClientSession
	cmd     *exec.Cmd      // of a server that is our child; nil for one with an address
	stderr  *runner.Tail   // of the child
	carrier *bearerCarrier // of a server with an address
	ended   bool
}

// connect starts a server or connects to it. The server can ask nothing of its client: no models, no
// directories, no person.
func (h *host) connect(ctx context.Context) (*session, error) {
	s := &session{stderr: &runner.Tail{Also: h.Stderr}}
	var way mcp.Transport
	if h.Service.URL != "" {
		s.carrier = &bearerCarrier{next: h.client.Transport, token: h.Bearer, host: h.to.Host}
		client := &http.Client{Transport: s.carrier, CheckRedirect: h.client.CheckRedirect}
		way = &mcp.StreamableClientTransport{Endpoint: h.Service.URL, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true}
	} else {
		s.cmd = exec.Command(h.Service.Command[0], h.Service.Command[1:]...)
		s.cmd.Env, s.cmd.Stderr, s.cmd.WaitDelay = serverEnvironment(h.Env), s.stderr, time.Second
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be ended
		way = &mcp.CommandTransport{Command: s.cmd, TerminateDuration: lingering}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "mailboxd", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var err error
	if s.ClientSession, err = client.Connect(ctx, way, nil); err != nil {
		s.end()
		return s, err
	}
	return s, nil
}

// end ends the connection, and all processes of a server that is our child. It does nothing the second time.
func (s *session) end() {
	if s.ended {
		return
	}
	s.ended = true
	if s.ClientSession != nil {
		_ = s.Close()
	}
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	group := -s.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGKILL)
	for end := time.Now().Add(lingering); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(group, 0) != nil {
			return
		}
	}
}

// serverEnvironment returns the environment of a server: that of its host without the variables of
// the run, but for the one by which the keeper knows its processes.
func serverEnvironment(own []string) []string {
	return slices.DeleteFunc(slices.Clone(own), func(entry string) bool {
		return strings.HasPrefix(entry, "MAILBOX_") && !strings.HasPrefix(entry, runner.DirVariable+"=")
	})
}

// callTool calls the tool once.
func (h *host) callTool(ctx context.Context) Result {
	arguments, err := services.Fill(h.Service.Arguments, h.Request)
	if err != nil {
		return refuse(envelope.InternalError, "mcp.arguments: %v", err)
	}
	s, err := h.connect(ctx)
	if err != nil {
		r := h.noServer(s, err, "can't be used")
		r.Again = r.Status == 0 && ctx.Err() == nil
		return r
	}
	defer s.end()
	tools, err := s.names(ctx)
	if err != nil {
		return h.noServer(s, err, "did not list its tools")
	}
	if !slices.Contains(tools, h.Service.Tool) {
		return refuse(envelope.AgentUnsuitable, "the server %s has no tool %s; it has %s", h.Service.Server, h.Service.Tool, listOf(tools))
	}
	h.record.To, h.record.Sent = h.Service.Server+"/"+h.Service.Tool, time.Now()
	if err := h.record.write(h.Dir); err != nil {
		h.record.Sent = time.Time{}
		return refuse(envelope.InternalError, "nothing was sent: %v", err)
	}
	point("recorded")
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: h.Service.Tool, Arguments: arguments})
	if err != nil {
		return h.uncalled(s, err)
	}
	point("sent")
	return h.returned(result)
}

// names returns the names of the tools of a server.
func (s *session) names(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names, nil
}

// noServer returns the result of a run whose server could not be asked. Nothing was called.
func (h *host) noServer(s *session, err error, what string) Result {
	if r, ok := h.refusedBy(s); ok {
		return r
	}
	if blocked, ok := errors.AsType[*dial.BlockedError](err); ok {
		return refuse(envelope.PolicyViolation, "the server %s %s: %v", h.Service.Server, what, blocked)
	}
	return refuse(envelope.AgentError, "the server %s %s: %v%s", h.Service.Server, what, err, s.lastWords())
}

// refusedBy returns the result of a request that an HTTP server refused with a status.
func (h *host) refusedBy(s *session) (Result, bool) {
	if s.carrier == nil || s.carrier.status < 300 {
		return Result{}, false
	}
	return h.refused(s.carrier.status, s.carrier.header, ""), true
}

// uncalled returns the result of a call without an answer. The server may have done the work, unless
// it refused the call.
func (h *host) uncalled(s *session, err error) Result {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return refuse(envelope.AgentError, "the tool %s of %s refused the call: %s", h.Service.Tool, h.Service.Server, refused.Message)
	}
	if r, ok := h.refusedBy(s); ok {
		return r
	}
	words := fmt.Sprintf("the server %s did not answer the call: %v%s", h.Service.Server, err, s.lastWords())
	if !h.Service.Idempotent {
		return h.lost(words)
	}
	r := h.later(envelope.AgentError, words)
	r.Again = true
	return r
}

// lastWords returns the end of the standard error of a server that is our child; "" for nothing. It ends the server, since
// standard error is read to its end only then.
func (s *session) lastWords() string {
	s.end()
	if last := s.stderr.Text(); last != "" {
		return "; its standard error ends with: " + last
	}
	return ""
}

// returned returns what a tool returned: structured content, or else its texts.
func (h *host) returned(result *mcp.CallToolResult) Result {
	var texts []string
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	text := strings.Join(texts, "\n")
	switch {
	case result.IsError:
		return refuse(envelope.AgentError, "the tool %s of %s failed: %s", h.Service.Tool, h.Service.Server, text)
	case result.NeedsInput():
		return refuse(envelope.AgentUnsuitable, "the tool %s of %s asks for input, which isn't offered", h.Service.Tool, h.Service.Server)
	case result.StructuredContent != nil:
		object, err := json.Marshal(result.StructuredContent, json.Deterministic(true))
		if err != nil {
			return refuse(envelope.OutputInvalid, "read what the tool returned: %v", err)
		}
		return h.answer(object)
	case len(text) > maxDecoded:
		return h.answer([]byte(text))
	case len(texts) == 0 && len(result.Content) > 0:
		return refuse(envelope.OutputInvalid, "the tool %s of %s returned no text and no structured content", h.Service.Tool, h.Service.Server)
	}
	return Result{Text: text}
}

// listOf lists names for a message.
func listOf(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "none"
	}
	list := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// Tools starts the server of a service or connects to it, and lists its tools. It calls none.
func Tools(ctx context.Context, s task.Service, env []string, bearer string) ([]string, error) {
	h := &host{Options: Options{Service: s, Env: env, Bearer: bearer}}
	if err := h.address(); err != nil {
		return nil, err
	}
	server, err := h.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, server.lastWords())
	}
	defer server.end()
	return server.names(ctx)
}
