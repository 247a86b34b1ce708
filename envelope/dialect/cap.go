package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// capCodec is CAP. Its agents write free text, delegate work only to allowed agents, and have
// it reviewed by an overseer.
type capCodec struct{}

// capWords are the types of CAP's messages (CAP-10), each with the member that has its text
// (CAP-12 to CAP-15).
var capWords = map[string]string{
	"message":           "content",
	"delegation_notice": "context_summary",
	"error_response":    "error_message",
	"oversight_inquiry": "inquiry",
}

// CAPDelegation is the task type of the work that a delegation_notice requests: CAP has no type
// of work.
const CAPDelegation = "cap.delegation"

// expectsReply is our one addition to CAP's messages: the sender waits for a reply, so the
// message is not the answer itself.
const expectsReply = "expects_reply"

func (capCodec) Decode(raw []byte, _ envelope.Reading) (envelope.Message, envelope.Findings) {
	r := openCap(raw)
	if r.members == nil {
		return r.message, r.findings
	}
	m := &r.message
	m.From = r.name("sender_id", r.required("sender_id"))
	to := r.name("recipient_id", r.required("recipient_id"))
	task := r.name("task_id", r.required("task_id"))
	r.says(r.name("type", r.required("type")), task, to)
	r.ask()
	return r.message, r.findings
}

// A capReading is a Message being read.
type capReading struct {
	fields
	message  envelope.Message
	findings envelope.Findings
}

// openCap reads an object. The reading has no members if no part of the object is reliable.
func openCap(raw []byte) *capReading {
	r := new(capReading)
	m := &r.message
	m.Raw, m.Dialect = bytes.Trim(raw, space), envelope.CAP
	if m.Hash, r.findings = envelope.ContentHash(m.Raw); r.findings.Refused() {
		m.Task, m.From = envelope.Salvage(m.Raw), envelope.ScrapString(m.Raw, "sender_id")
		return r
	}
	r.fields = newFields(m.Raw, "", &r.findings)
	return r
}

// says reads the members that each message of a type has.
func (r *capReading) says(word, task, to string) {
	m := &r.message
	if to != "" {
		m.To = []string{to}
	}
	m.Task, m.Thread, m.Time = TaskID(task), capThread(task), r.instant("timestamp")
	if words := capWords[word]; words != "" {
		m.Text = r.prose(words, r.required(words))
	}
	r.does(word)
	if m.Act != envelope.Fails { // it has none, and would be an unknown field
		m.Attachments = r.attachments("attachments")
	}
	switch {
	case string(m.Task) == task:
	case asks(m.Act): // no name for a file: later messages about the task use the original name
		m.ID = task
	default:
		m.Cause = task
	}
	m.Extra = r.unknown()
}

// does reads the act of a message, and the members that only its type has.
func (r *capReading) does(word string) {
	m := &r.message
	switch word {
	case "message":
		m.Act, m.WantsReply = envelope.Informs, r.flag(expectsReply)
	case "delegation_notice":
		m.Act, m.Type = envelope.Requests, CAPDelegation
		if m.From != "user" && m.From != "orchestrator" { // CAP-17
			m.Act, m.Tie = envelope.Delegates, envelope.Assist
		}
	case "error_response":
		m.Act = envelope.Fails
		m.Failure = capFailure(r.integer("error_code"), m.Text)
		m.Text = m.Failure.Message
	case "oversight_inquiry":
		m.Act, m.WantsReply = envelope.Inquires, true
	case "":
	default:
		r.refuse("type", `must be "message", "delegation_notice", "error_response" or "oversight_inquiry"`)
	}
}

// capThread returns the first segment of a dotted task id: the conversation (CAP-21).
func capThread(task string) string {
	if root, _, _ := strings.Cut(task, "."); root != "" {
		return root
	}
	return task
}

// ask makes the request of a message. CAP has no limits, so only those of the configuration
// bind.
func (r *capReading) ask() {
	m := &r.message
	if !asks(m.Act) {
		return
	}
	t := envelope.Task{
		Raw: m.Raw, Hash: m.Hash, ID: m.Task, Requester: m.From, Type: m.Type, Description: m.Text,
		Payload: jsontext.Value(`{}`), Refs: refsOf(m.Attachments), Sensitivity: envelope.Internal,
	}
	if len(m.To) == 1 {
		t.Agent = m.To[0]
	}
	if things := r.member("attachments"); things != nil {
		t.Payload = object(map[string]jsontext.Value{"attachments": things})
	}
	t.Input = object(map[string]jsontext.Value{"payload": t.Payload})
	m.Request = t
}
