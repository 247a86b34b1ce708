package dialect

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// reviewing is the type of a QRY about a review: from an overseer, or from an agent that needs
// a review (mapping 2.2).
const reviewing = "review"

// approving is the type of an INF with which an overseer approves.
const approving = "approve"

// act reads the act of a message, and the members of d that its performative has.
func (r *clowlReading) act() {
	m := &r.message
	p := r.performative()
	if m.Act = acts[p]; asks(m.Act) {
		m.Task = TaskID(m.ID) // also if its data cannot be read: the refused task has a result
	}
	if r.d.members == nil {
		return
	}
	m.Act = r.nuance(p)
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		m.Task = TaskID(m.ID)
		m.Text = r.said("description")
		r.delegation(p)
	case envelope.Fails:
		m.Failure = r.failure()
		m.Text = m.Failure.Message
		m.Answer = failedAnswer(m.Failure)
	case envelope.Completes:
		m.Text = r.said("summary")
		m.Answer = r.answer()
	case envelope.Announces:
		m.Supports = r.supports()
	case envelope.Reports, envelope.Waits:
		m.Text = r.said("note")
	default:
		m.Text = r.said("text", "note", "msg", "message", "question", "description")
	}
	if !asks(m.Act) {
		m.Task = TaskID(r.said("task_id", "mid"))
		m.WantsReply = r.d.member(expectsAnswer).Kind() == 't'
	}
}

// acts are the acts of the performatives.
var acts = map[string]envelope.Act{
	"REQ": envelope.Requests, "INF": envelope.Informs, "ACK": envelope.Accepts, "ERR": envelope.Fails, "DLGT": envelope.Delegates,
	"DONE": envelope.Completes, "CNCL": envelope.Cancels, "QRY": envelope.Asks, "PROG": envelope.Reports, "CAPS": envelope.Announces,
}

// expectsAnswer is our one addition to d: the sender waits for a reply.
const expectsAnswer = "expects_reply"

// nuance returns the act of a performative, which members of d may change.
func (r *clowlReading) nuance(p string) envelope.Act {
	mode := r.said("delegation_mode")
	switch {
	case p == "ACK" && r.said("status") == string(envelope.Stopped):
		return envelope.Stops
	case p == "PROG" && blocking(r.d.member("blocked")):
		return envelope.Waits
	case p == "INF" && r.message.Type == "status" && r.d.has("state"):
		return envelope.ReportsStatus
	case p == "QRY" && r.message.Type == reviewing && mode == string(envelope.Oversee):
		return envelope.Delegates
	case p == "QRY" && r.message.Type == reviewing:
		return envelope.Inquires
	}
	return acts[p]
}

// blocking reports whether the blocked member of a PROG is more than "no".
func blocking(value jsontext.Value) bool {
	return value != nil && !slices.Contains([]string{"null", "false", `""`, "[]"}, string(line(value)))
}

// said returns the first of these members of d that is a text.
func (r *clowlReading) said(names ...string) string {
	for _, name := range names {
		if text, ok := textOf(r.d.members[name]); ok && text != "" {
			return text
		}
	}
	return ""
}

// delegation reads the delegation of a DLGT, or of a QRY for a review (CLOWL-30).
func (r *clowlReading) delegation(p string) {
	m := &r.message
	mode := envelope.Tie(r.said("delegation_mode"))
	switch {
	case m.Act != envelope.Delegates:
		return
	case p == "QRY", slices.Contains([]envelope.Tie{envelope.Transfer, envelope.Fork, envelope.Assist}, mode):
		m.Tie = mode
	case r.d.has("delegation_mode"):
		r.d.note(envelope.ValidationFailed, "delegation_mode", "must be transfer, fork or assist")
	default:
		r.d.note(envelope.ValidationFailed, "delegation_mode", "required")
	}
	if slices.Contains(m.To, m.From) {
		r.note(envelope.DelegationCycle, "to", "must not be who delegates")
	}
}

// failure reads the data of an ERR (CLOWL-26). Without a readable code it is an internal error.
func (r *clowlReading) failure() envelope.Failure {
	code, words := r.said("code"), r.said("msg", "message")
	if !isCode(code) {
		r.d.note("", "code", "is no code of an error, read as E009")
		if code != "" {
			words = "[" + code + "] " + words
		}
		code = "E009"
	}
	f := FailureOf(kindOfCLowl(code), words)
	f.Code = code
	if exact := envelope.Kind(r.said("kind")); known(exact) {
		if own, _, _ := Code(exact); own == code {
			f.Kind = exact
		}
	}
	switch retry := r.d.member("retry"); retry.Kind() {
	case 't', 'f':
		f.Retry = retry.Kind() == 't'
	default:
		r.d.note("", "retry", "must be true or false, read as what the code says")
	}
	return f
}

// isCode reports whether a code is one of the sixteen, or of a reserved range (CLOWL-34).
func isCode(code string) bool {
	if len(code) != 4 || code[0] != 'E' || strings.Trim(code[1:], "0123456789") != "" {
		return false
	}
	return code >= "E001" && code <= "E016" || code >= "E100" && code < "E300" || code >= "E900"
}

func failedAnswer(f envelope.Failure) envelope.Result {
	own, _, retry := Code(f.Kind)
	a := envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: f.Kind, Message: f.Message, Final: retry && !f.Retry}}
	if f.Code != own {
		a.Error.Code = f.Code
	}
	if f.Kind == envelope.Cancelled {
		a.Status = envelope.Stopped
	}
	a.Output.Summary = f.Message
	return a
}

// supports reads the types of work that an agent announces (CLOWL-29).
func (r *clowlReading) supports() []string {
	value := r.d.member("supports")
	var items []jsontext.Value
	if value.Kind() != '[' || !unmarshal(value, &items) {
		r.d.note(envelope.ValidationFailed, "supports", "must be a list of what you take")
		return nil
	}
	names := []string{}
	for i, item := range items {
		name, ok := textOf(item)
		if !ok || name == "" || strings.ContainsFunc(name, hiddenRune) {
			r.d.note(envelope.ValidationFailed, indexed("supports", i), "must be the name of a type of work")
			continue
		}
		names = append(names, name)
	}
	return names
}
