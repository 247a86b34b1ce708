package acp

import (
	"errors"
	"os"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A question is what the host needs of a session/request_permission.
type question struct {
	Session string                 `json:"sessionId"`
	Call    toolCall               `json:"toolCall"`
	Options []sdk.PermissionOption `json:"options"`
}

// ask asks about a call through the files of the run, and answers the agent when the decision is
// there.
func (h *host) ask(f frame) {
	var q question
	h.mu.Lock()
	defer h.mu.Unlock()
	if json.Unmarshal(f.Params, &q, lenient) != nil || q.Session != h.session || !h.live {
		h.agent.reply(f.ID, sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()})
		return
	}
	call, repeated := h.calls.ask(q.Session, q.Call)
	if h.decidesBroker(q.Call) {
		h.answers.add(decision{ID: call.ID, Decision: "allow"})
	} else if !repeated && !h.report("ask", call) {
		h.answers.add(decision{ID: call.ID, Decision: "reject"})
	}
	h.waits.Go(func() {
		d, ok := h.answers.wait(h.agent.ended, call.ID)
		if !ok {
			return
		}
		chosen := outcome(q.Options, d)
		h.note(q, d.Decision == "allow" && chosen.Selected != nil)
		h.agent.reply(f.ID, sdk.RequestPermissionResponse{Outcome: chosen})
	})
}

// note keeps what was decided about a call, before the agent gets it.
func (h *host) note(q question, allowed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if call := h.calls.of(q.Session, text(q.Call.ID)); allowed {
		call.allowed = true
	} else {
		h.calls.rejected = true
	}
}

// outcome is the option that a decision chooses: for this call only. Without such an option, the
// call is cancelled.
func outcome(options []sdk.PermissionOption, d decision) sdk.RequestPermissionOutcome {
	kind := map[string]sdk.PermissionOptionKind{
		"allow": sdk.PermissionOptionKindAllowOnce, "reject": sdk.PermissionOptionKindRejectOnce,
	}[d.Decision]
	for _, o := range options {
		if kind != "" && o.Kind == kind {
			return sdk.NewRequestPermissionOutcomeSelected(o.OptionId)
		}
	}
	return sdk.NewRequestPermissionOutcomeCancelled()
}

// maxLine is the longest line of a progress file, in bytes.
const maxLine = 1 << 20

// report appends a line about a call to the progress file of the run. A line that is too long goes
// without the input of the tool, which the other members repeat; it is false for one that is still
// too long. If it can't be written, no call would be known, so the run ends. h.mu is held.
func (h *host) report(what string, call Call) bool {
	line, err := json.Marshal(map[string]Call{what: call}, lenient)
	if len(line) >= maxLine {
		call.Raw = jsontext.Value("null")
		line, err = json.Marshal(map[string]Call{what: call}, lenient)
	}
	if len(line) >= maxLine && what == "called" {
		call.Diff, call.Command, call.Title = "", "", short(call.Title) // no rule allows it then
		line, err = json.Marshal(map[string]Call{what: call}, lenient)
	}
	if err == nil && len(line) < maxLine && h.opts.Progress != "" {
		err = appendLine(h.opts.Progress, append(line, '\n'))
	}
	if err != nil {
		h.end(failure(kindInternal, "report a call of a tool: %v", err))
	}
	return len(line) < maxLine
}

// appendLine appends a line with one write.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
