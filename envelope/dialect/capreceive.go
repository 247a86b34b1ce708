package dialect

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mailboxd/envelope"
)

func (capCodec) Receive(raw []byte, about envelope.Task) (envelope.Message, envelope.Findings) {
	r := openCap(raw)
	if r.members == nil {
		return r.message, attributeToAgent(r.findings)
	}
	r.message.Raw = line(r.message.Raw)
	m, lacks := &r.message, r.dropTimestamp()
	said := func(name, otherwise string) string {
		if !r.has(name) {
			lacks = true
			return otherwise
		}
		return r.name(name, r.member(name))
	}
	word := said("type", r.guess())
	m.From = said("sender_id", about.Agent)
	to := said("recipient_id", about.Requester)
	own := string(about.ID)
	if word == "delegation_notice" { // so that the same delegation gets the same name each time
		own += "." + m.Hash[:8]
	}
	r.says(word, said("task_id", own), to)
	if word == "" {
		r.refuse("type", "required")
	}
	if m.From != about.Agent && about.Agent != "" {
		r.note(envelope.IdentityMismatch, "sender_id", "the agent speaks as another one")
	}
	if lacks && !r.findings.Refused() {
		r.complete()
	}
	r.ask()
	r.answer(about)
	return r.message, attributeToAgent(r.findings)
}

// dropTimestamp removes a timestamp that is no time, and reports whether it did: models invent
// times, and the answer is worth more than its time.
func (r *capReading) dropTimestamp() bool {
	var wrong envelope.Findings
	tried := r.fields
	tried.findings = &wrong
	if tried.instant("timestamp"); !wrong.Refused() {
		return false
	}
	delete(r.members, "timestamp")
	r.note("", "timestamp", wrong[0].Message+": left out")
	return true
}

// guess returns the type of a message without one, by the members that it has.
func (r *capReading) guess() string {
	for _, word := range slices.Sorted(maps.Keys(capWords)) {
		if r.has(capWords[word]) {
			return word
		}
	}
	return ""
}

// complete writes a message with its missing members added, so that it can be read again by
// itself.
func (r *capReading) complete() {
	m := &r.message
	m.Raw = capLine(*m, m.Time)
	m.Hash, _ = envelope.ContentHash(m.Raw)
}

// questions reports whether a message ends with a question mark and has no expects_reply.
func (r *capReading) questions() bool {
	return !r.has(expectsReply) && strings.HasSuffix(strings.TrimSpace(r.message.Text), "?")
}

// answer makes an answer of a message of an agent about its own task: a message to the
// requester (CAP-33), or an error. A message that expects a reply is no answer. One that ends
// with a question mark is an answer with WantsReply: it may be a question.
func (r *capReading) answer(about envelope.Task) {
	m := &r.message
	if m.Task != about.ID || r.findings.Refused() {
		return
	}
	a := envelope.Result{Status: envelope.OK, Output: envelope.Output{Summary: m.Text}}
	switch {
	case m.Act == envelope.Fails:
		a.Status, a.Error = envelope.Failed, envelope.Error{Kind: m.Failure.Kind, Message: m.Failure.Message}
		if _, own, _ := Code(m.Failure.Kind); m.Failure.Code != strconv.Itoa(own) {
			a.Error.Code = m.Failure.Code
		}
	case m.Act == envelope.Informs && !m.WantsReply && len(m.To) == 1 && m.To[0] == about.Requester:
		m.Act, m.WantsReply = envelope.Completes, r.questions()
	default:
		return
	}
	a.Output.Extra = m.Extra
	if things := r.member("attachments"); len(m.Attachments) > 0 {
		a.Output.Extra = with(m.Extra, "attachments", things)
	}
	a.Artifacts = refsOf(m.Attachments)
	m.Answer = a
}
