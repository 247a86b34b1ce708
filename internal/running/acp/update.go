package acp

import (
	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An update is what a session/update says of a session, as far as the host needs it.
type update struct {
	Session string `json:"sessionId"`
	Update  struct {
		Kind    string         `json:"sessionUpdate"`
		Content jsontext.Value `json:"content"`
		Message string         `json:"messageId"`
		Mode    string         `json:"currentModeId"`
		Options []option       `json:"configOptions"`
		Cost    jsontext.Value `json:"cost"`
	} `json:"update"`
}

// receive takes a request or a notification of the agent, in the order in which they come.
func (h *host) receive(line []byte, f frame) {
	switch {
	case f.Method == sdk.ClientMethodSessionUpdate:
		h.update(line, f.Params)
	case f.ID == nil: // a notification of an extension
	case f.Method == sdk.ClientMethodSessionRequestPermission:
		h.ask(f)
	default:
		h.agent.reply(f.ID, nil)
	}
}

// update prints an update of this run, and keeps what the host needs of it. What an agent sends
// before the prompt repeats an earlier run, or says what the session has.
func (h *host) update(line []byte, params jsontext.Value) {
	var u update
	known := json.Unmarshal(params, &u, lenient) == nil
	var call struct {
		Update toolCall `json:"update"`
	}
	isCall := known && (u.Update.Kind == "tool_call" || u.Update.Kind == "tool_call_update") &&
		json.Unmarshal(params, &call, lenient) == nil

	h.mu.Lock()
	defer h.mu.Unlock()
	own := u.Session == h.session
	if known && own {
		h.checkMode(u)
		h.said.price(u.Update.Cost, h.live)
	}
	if !h.live {
		return
	}
	h.print(append(line, '\n'))
	switch {
	case isCall:
		if own {
			h.said.interrupt()
		}
		if done, ok := h.calls.update(u.Session, call.Update); ok {
			h.report("called", done)
		}
	case known && own && u.Update.Kind == "agent_message_chunk":
		h.said.add(u.Update.Message, textOf(u.Update.Content))
	}
}

// checkMode ends the run if the agent left the mode in which it asks. h.mu is held.
func (h *host) checkMode(u update) {
	mode, named := u.Update.Mode, u.Update.Kind == "current_mode_update"
	if u.Update.Kind == "config_option_update" {
		mode, named = modeIn(u.Update.Options)
	}
	if !named {
		return
	}
	h.mode = mode
	if h.setting && mode != h.opts.Mode {
		h.end(failure(kindUnsuitable, "the agent went into the mode %q; want %q, in which it asks", short(mode), h.opts.Mode))
	}
}

// print writes a line of standard output. h.mu is held.
func (h *host) print(line []byte) {
	if _, err := h.opts.Stdout.Write(line); err != nil {
		h.end(failure(kindInternal, "write standard output: %v", err))
	}
}

// textOf returns the text of a content.
func textOf(content jsontext.Value) string {
	var c struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &c, lenient) // another content has no text
	return c.Text
}
