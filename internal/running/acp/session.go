package acp

import (
	"context"
	"errors"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// capabilities are what an agent can do with sessions.
type capabilities struct {
	Load     bool `json:"loadSession"`
	Sessions struct {
		Resume jsontext.Value `json:"resume"`
	} `json:"sessionCapabilities"`
	Servers struct {
		HTTP bool `json:"http"`
	} `json:"mcpCapabilities"`
}

func (c capabilities) resumes() bool {
	return len(c.Sessions.Resume) > 0 && c.Sessions.Resume.Kind() != 'n'
}

// opened is what an agent says of a session that it opened.
type opened struct {
	Session string `json:"sessionId"`
	Modes   struct {
		Current string `json:"currentModeId"`
	} `json:"modes"`
	Options []option `json:"configOptions"`
}

// An option is a setting of a session.
type option struct {
	ID    string         `json:"id"`
	Value jsontext.Value `json:"currentValue"`
}

// modeOption is the option with the mode of a session.
const modeOption = "mode"

// modeIn returns the mode among options; false if there is none.
func modeIn(options []option) (mode string, ok bool) {
	for _, o := range options {
		if o.ID == modeOption && json.Unmarshal(o.Value, &mode, lenient) == nil {
			return mode, true
		}
	}
	return "", false
}

// open opens a new session, or the one that the run continues.
func (h *host) open(ctx context.Context, can capabilities) (o opened, err error) {
	servers, err := h.toolServers(can)
	if err != nil {
		return o, err
	}
	var reply jsontext.Value
	if h.opts.Resume != "" {
		reply, err = h.resume(ctx, can, servers)
	} else {
		request := sdk.NewSessionRequest{Cwd: h.opts.Cwd, McpServers: servers}
		reply, err = h.agent.call(ctx, sdk.AgentMethodSessionNew, request)
	}
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(reply, &o, lenient); err != nil {
		return o, failure(kindProtocol, "read the session: %v", err)
	}
	if h.opts.Resume != "" {
		o.Session = h.opts.Resume
	}
	if o.Session == "" {
		return o, failure(kindProtocol, "the agent opened a session without an id")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = o.Session
	if mode, ok := modeIn(o.Options); ok {
		h.mode = mode
	} else {
		h.mode = o.Modes.Current
	}
	return o, nil
}

// resume opens an earlier session. session/resume is preferred, since session/load also sends what
// was said before.
func (h *host) resume(ctx context.Context, can capabilities, servers []sdk.McpServer) (jsontext.Value, error) {
	id := sdk.SessionId(h.opts.Resume)
	h.mu.Lock()
	h.session = h.opts.Resume
	h.mu.Unlock()
	why := "the agent can neither resume nor load a session"
	try := func(method string, params any) (reply jsontext.Value, err error, final bool) {
		reply, err = h.agent.call(ctx, method, params)
		f, failed := errors.AsType[*Failure](err)
		if failed && f.Kind == kindAgent {
			why = f.Message
			return nil, nil, false
		}
		return reply, err, true
	}
	if can.resumes() {
		request := sdk.ResumeSessionRequest{SessionId: id, Cwd: h.opts.Cwd, McpServers: servers}
		reply, err, final := try(sdk.AgentMethodSessionResume, request)
		if final {
			return reply, err
		}
	}
	if can.Load {
		request := sdk.LoadSessionRequest{SessionId: id, Cwd: h.opts.Cwd, McpServers: servers}
		reply, err, final := try(sdk.AgentMethodSessionLoad, request)
		if final {
			return reply, err
		}
	}
	return nil, failure(kindSession, "the agent can't continue session %q: %s", short(h.opts.Resume), why)
}

// setMode sets the mode in which the agent asks, and reads it back. An agent in another mode would
// act without asking, so it doesn't get the prompt.
func (h *host) setMode(ctx context.Context, o opened) error {
	want := h.opts.Mode
	if want == "" {
		return nil
	}
	h.mu.Lock()
	h.setting = true
	h.mu.Unlock()
	var err error
	if _, ok := modeIn(o.Options); ok {
		err = h.setOption(ctx, o.Session, want)
	} else if h.currentMode() != want {
		_, err = h.agent.call(ctx, sdk.AgentMethodSessionSetMode, sdk.SetSessionModeRequest{
			SessionId: sdk.SessionId(o.Session), ModeId: sdk.SessionModeId(want),
		})
	}
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == kindAgent {
		return failure(kindUnsuitable, "the agent doesn't take the mode %q, in which it asks: %s", want, f.Message)
	}
	if err != nil {
		return err
	}
	if mode := h.currentMode(); mode != want {
		return failure(kindUnsuitable, "the agent is in the mode %q; want %q, in which it asks", short(mode), want)
	}
	return nil
}

// setOption sets the mode by an option. The answer has all options.
func (h *host) setOption(ctx context.Context, session, mode string) error {
	reply, err := h.agent.call(ctx, sdk.AgentMethodSessionSetConfigOption, sdk.SetSessionConfigOptionRequest{
		ValueId: &sdk.SetSessionConfigOptionValueId{
			SessionId: sdk.SessionId(session), ConfigId: modeOption, Value: sdk.SessionConfigValueId(mode),
		},
	})
	if err != nil {
		return err
	}
	var set opened
	_ = json.Unmarshal(reply, &set, lenient) // without the option, the mode isn't read back
	current, _ := modeIn(set.Options)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mode = current
	return nil
}

func (h *host) currentMode() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mode
}
