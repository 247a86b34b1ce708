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
		return r.message, blameAgent(r.findings)
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
	if word == "delegation_notice" { // the same hand-over has the same name whenever it is said
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
	return r.message, blameAgent(r.findings)
}

// dropTimestamp leaves out a timestamp that is no time, and reports whether it did: models make
// times up, and an answer is worth more than its time.
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

// guess is the type of a message that does not say it, by the words it has.
func (r *capReading) guess() string {
	for _, word := range slices.Sorted(maps.Keys(capWords)) {
		if r.has(capWords[word]) {
			return word
		}
	}
	return ""
}

// complete writes a message as it is with what it lacked, so that it can be read
// again by itself.
func (r *capReading) complete() {
	m := &r.message
	m.Raw = capLine(*m, m.Time)
	m.Hash, _ = envelope.ContentHash(m.Raw)
}

// questions reports whether a message ends with a question mark and does not say
// itself whether it expects a reply.
func (r *capReading) questions() bool {
	return !r.has(expectsReply) && strings.HasSuffix(strings.TrimSpace(r.message.Text), "?")
}

// answer makes an answer of what an agent says about its own task: a message to
// the requester (CAP-33), or an error. One that expects a reply is none yet. One
// that ends with a question mark is an answer with WantsReply: it may be a question.
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
