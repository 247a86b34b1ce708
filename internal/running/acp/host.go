// Package acp is the host of an agent that speaks the Agent Client Protocol (ACP): the command of
// its run. It starts the agent, gives it the prompt, asks through files before the agent uses a
// tool, and prints the updates of the session and the answer.
//
// It takes the types of messages from github.com/coder/acp-go-sdk and not its Connection, which
// goes on after a line that is no JSON, ends at 10 MiB, and hands on requests beside the updates
// that came before them.
package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Kinds of failures that a host reports.
const (
	kindProtocol   = "agent_protocol"      // the agent doesn't speak the protocol
	kindUnsuitable = "agent_unsuitable"    // it isn't in the mode in which it asks
	kindSession    = "session_unavailable" // it can't continue the session
	kindLogin      = "auth_required"       // a person has to log in
	kindAgent      = "agent_error"
	kindCancelled  = "cancelled"
	kindInternal   = "internal"
)

// A Failure is why a run of an agent failed.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Message }

func failure(kind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// A host runs one agent for one prompt.
type host struct {
	opts    Options
	agent   *client
	answers *answers
	end     context.CancelCauseFunc // ends the run
	waits   sync.WaitGroup          // for decisions

	mu      sync.Mutex // guards what follows
	session string
	live    bool   // the prompt was sent: what the agent sends belongs to this run
	mode    string // the last one that the agent named
	setting bool   // the mode was set: no other one may follow
	calls   calls
	said    said
}

// Run runs an agent, and prints the updates of its session and the answer. The error is that of the
// answer.
func Run(ctx context.Context, o Options) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	h := &host{opts: o, end: end, answers: newAnswers(o.Answers)}
	h.calls.cwd = o.Cwd
	var follow sync.WaitGroup
	follow.Go(func() { h.answers.follow(ctx) })
	defer follow.Wait()
	defer end(nil)

	stop, err := h.attempt(ctx)
	return h.answer(stop, err)
}

// attempt runs the agent to the end of its turn, and returns the reason of that end.
func (h *host) attempt(ctx context.Context) (stop string, err error) {
	p, err := startProcess(h.opts)
	if err != nil {
		return "", failure(kindAgent, "start the agent: %v", err)
	}
	h.agent = newClient(p.stdin, h.receive)
	var reading sync.WaitGroup
	reading.Go(func() {
		h.agent.read(p.stdout)
		_ = p.stdout.Close() // an agent that goes on writing ends
	})
	stop, err = h.converse(ctx)
	itself := false // the agent ended by itself
	select {
	case <-h.agent.ended:
		itself = errors.Is(h.agent.err, io.EOF)
	default:
	}
	h.end(err)
	p.stop(cmp.Or(h.opts.Grace, 5*time.Second))
	reading.Wait()
	h.waits.Wait()
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == kindProtocol {
		f.Message += p.ending(itself)
	}
	return stop, err
}

// converse opens the session, sets its mode, and gives it the prompt.
func (h *host) converse(ctx context.Context) (stop string, err error) {
	can, err := h.initialize(ctx)
	if err != nil {
		return "", err
	}
	opened, err := h.open(ctx, can)
	if err != nil {
		return "", err
	}
	if err := h.setMode(ctx, opened); err != nil {
		return "", err
	}
	return h.prompt(ctx)
}

// initialize agrees on the protocol. It offers no access to files and terminals, which the agent
// then uses by itself in the sandbox of the run.
func (h *host) initialize(ctx context.Context) (can capabilities, err error) {
	patience := cmp.Or(h.opts.Patience, 30*time.Second)
	overdue := failure(kindProtocol, "the agent did not answer initialize in %v", patience)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, overdue)
	defer cancel()
	reply, err := h.agent.call(ctx, sdk.AgentMethodInitialize, sdk.InitializeRequest{
		ProtocolVersion: ProtocolVersion,
		ClientInfo:      &sdk.Implementation{Name: "mailboxd", Version: "1"},
	})
	if err != nil {
		return can, err
	}
	var version struct {
		Version      int          `json:"protocolVersion"`
		Capabilities capabilities `json:"agentCapabilities"`
		Agent        struct {
			Name string `json:"name"`
		} `json:"agentInfo"`
	}
	if err := json.Unmarshal(reply, &version, lenient); err != nil {
		return can, failure(kindProtocol, "read the answer to initialize: %v", err)
	}
	if version.Version != ProtocolVersion {
		return can, failure(kindProtocol, "the agent speaks version %d of the protocol; want %d",
			version.Version, ProtocolVersion)
	}
	h.mu.Lock()
	h.said.partial = version.Agent.Name == partialName
	h.mu.Unlock()
	return version.Capabilities, nil
}

// prompt gives the session the prompt, and waits for the end of the turn. When the run ends before,
// it asks the agent to end the turn.
func (h *host) prompt(ctx context.Context) (stop string, err error) {
	h.mu.Lock()
	h.live = true
	session := sdk.SessionId(h.session)
	h.mu.Unlock()
	reply, err := h.agent.call(ctx, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{
		SessionId: session, Prompt: []sdk.ContentBlock{sdk.TextBlock(h.opts.Prompt)},
	})
	if ctx.Err() != nil {
		h.agent.notify(sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: session})
	}
	if err != nil {
		return "", err
	}
	var turn struct {
		Stop  string         `json:"stopReason"`
		Usage jsontext.Value `json:"usage"`
		Meta  jsontext.Value `json:"_meta"`
	}
	if err := json.Unmarshal(reply, &turn, lenient); err != nil {
		return "", failure(kindProtocol, "read the answer to the prompt: %v", err)
	}
	h.mu.Lock()
	h.said.count(turn.Usage, turn.Meta)
	rejected := h.calls.rejected
	h.mu.Unlock()
	if turn.Stop == "cancelled" && rejected { // as Codex ends it
		return turn.Stop, failure(kindAgent, "the agent ended its turn after a call of a tool was rejected")
	}
	return turn.Stop, stopped(turn.Stop)
}

// stopped returns the failure of a turn that didn't come to its end.
func stopped(reason string) error {
	switch reason {
	case "end_turn":
		return nil
	case "max_tokens":
		return failure(kindAgent, "the model reached its limit of tokens")
	case "max_turn_requests":
		return failure(kindAgent, "the agent reached its limit of requests to the model")
	case "refusal":
		return failure(kindAgent, "the agent refuses to go on")
	case "cancelled":
		return failure(kindCancelled, "the agent ended the turn as cancelled")
	}
	return failure(kindProtocol, "the agent ended the turn with the unknown reason %q", short(reason))
}
