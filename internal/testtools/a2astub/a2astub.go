// Package a2astub has an agent of A2A for tests, with the server of a2a-go. The first word of a message says what it does.
package a2astub

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// An Agent is an agent on this machine. It counts the messages that arrive.
type Agent struct {
	*httptest.Server
	Token string // which each request needs; "": none

	mu       sync.Mutex // guards the fields below
	card     a2a.AgentCard
	messages []*a2a.Message
	calls    []string // the methods and paths of all requests
	before   func(call string)
	released chan struct{}
	asked    chan struct{} // closed, and made anew, when a task is asked for
}

// New starts an agent with an interface of a binding.
func New(binding a2a.TransportProtocol, streams bool) *Agent {
	a := &Agent{released: make(chan struct{}), asked: make(chan struct{})}
	capabilities := a2a.AgentCapabilities{Streaming: streams}
	handler := a2asrv.NewHandler(a, a2asrv.WithCapabilityChecks(&capabilities), a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
	speak := a2asrv.NewJSONRPCHandler(handler)
	if binding == a2a.TransportProtocolHTTPJSON {
		speak = a2asrv.NewRESTHandler(handler)
	}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.arrive(r)
		switch {
		case a.Token != "" && r.Header.Get("Authorization") != "Bearer "+a.Token:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == a2asrv.WellKnownAgentCardPath:
			a.mu.Lock()
			card := a.card
			a.mu.Unlock()
			a2asrv.NewStaticAgentCardHandler(&card).ServeHTTP(w, r)
		default:
			speak.ServeHTTP(w, r)
		}
	}))
	a.card = a2a.AgentCard{
		Name: "Stub", Version: "1", Capabilities: capabilities, SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(a.URL, binding)},
		DefaultInputModes: []string{"text"}, DefaultOutputModes: []string{"text"}, Skills: []a2a.AgentSkill{},
	}
	return a
}

func (a *Agent) arrive(r *http.Request) {
	call := r.Method + " " + r.URL.Path
	if r.Method == http.MethodPost && r.URL.Path == "/" {
		text, _ := io.ReadAll(r.Body) // what can't be read is the handler's to refuse
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		_, rest, _ := strings.Cut(string(text), `"method":"`)
		call, _, _ = strings.Cut(rest, `"`)
	}
	a.mu.Lock()
	a.calls = append(a.calls, call)
	if call == "GetTask" {
		close(a.asked)
		a.asked = make(chan struct{})
	}
	before := a.before
	a.mu.Unlock()
	if before != nil {
		before(call)
	}
}

// Before has a function called before each request is answered.
func (a *Agent) Before(do func(call string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = do
}

// SetCard changes the card.
func (a *Agent) SetCard(change func(*a2a.AgentCard)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.card)
}

// Messages returns the messages that arrived.
func (a *Agent) Messages() []*a2a.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*a2a.Message(nil), a.messages...)
}

// Calls returns the methods of JSON-RPC, or the methods and paths of HTTP, that arrived.
func (a *Agent) Calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.calls...)
}

// Release lets tasks go on that wait.
func (a *Agent) Release() { close(a.released) }

// Execute implements a2asrv.AgentExecutor.
func (a *Agent) Execute(ctx context.Context, of *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	a.mu.Lock()
	a.messages = append(a.messages, of.Message)
	a.mu.Unlock()
	return func(yield func(a2a.Event, error) bool) {
		say := func(s a2a.TaskState, words string) bool {
			return yield(a2a.NewStatusUpdateEvent(of, s, a2a.NewMessageForTask(a2a.MessageRoleAgent, of, a2a.NewTextPart(words))), nil)
		}
		text := of.Message.Parts[0].Text()
		word, _, _ := strings.Cut(text, " ")
		if of.StoredTask != nil {
			word = "done"
		} else if word == "direct" {
			yield(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("directly")), nil)
			return
		} else if !yield(a2a.NewSubmittedTask(of, of.Message), nil) || !say(a2a.TaskStateWorking, "thinking about it") {
			return
		}
		a.end(ctx, word, text, of, yield, say)
	}
}

// ends are the states in which a word ends a task.
var ends = map[string]a2a.TaskState{
	"ask": a2a.TaskStateInputRequired, "fail": a2a.TaskStateFailed, "reject": a2a.TaskStateRejected, "cancel": a2a.TaskStateCanceled,
}

func (a *Agent) end(
	ctx context.Context, word, text string, of *a2asrv.ExecutorContext,
	yield func(a2a.Event, error) bool, say func(a2a.TaskState, string) bool,
) {
	switch word {
	case "login":
		if !say(a2a.TaskStateAuthRequired, "log in first") {
			return
		}
		fallthrough
	case "wait":
		select {
		case <-ctx.Done():
			return
		case <-a.released:
		}
	case "slow": // it is over once its state was asked for
		a.mu.Lock()
		asked := a.asked
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
	case "files":
		odd := a2a.NewRawPart([]byte("raw"))
		odd.Filename = "../../etc/pass wd"
		e := a2a.NewArtifactEvent(of, odd, a2a.NewDataPart(map[string]any{"n": 1}), a2a.NewFileURLPart("https://example.com/x", "text/plain"),
			a2a.NewFileURLPart("file:///etc/passwd", "text/plain"))
		if !yield(e, nil) {
			return
		}
	default:
		if s := ends[word]; s != "" {
			say(s, word+": because")
			return
		}
	}
	e := a2a.NewArtifactEvent(of, a2a.NewTextPart(fmt.Sprintf("did %q", text)))
	e.LastChunk = true
	if yield(e, nil) {
		yield(a2a.NewStatusUpdateEvent(of, a2a.TaskStateCompleted, nil), nil)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (a *Agent) Cancel(_ context.Context, of *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(of, a2a.TaskStateCanceled, nil), nil)
	}
}
