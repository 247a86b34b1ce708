package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// capCodec is CAP, the language of agents that talk freely, hand work only to
// those they are allowed to, and have it looked at by an overseer.
type capCodec struct{}

// capWords are the types of CAP's messages (CAP-10), each with the member that
// has its words (CAP-12 to CAP-15).
var capWords = map[string]string{
	"message":           "content",
	"delegation_notice": "context_summary",
	"error_response":    "error_message",
	"oversight_inquiry": "inquiry",
}

// CAPDelegation is the type of the work that a delegation_notice asks for, for
// which CAP has no word.
const CAPDelegation = "cap.delegation"

// expectsReply is our one addition to CAP's messages: the sender goes on when it
// has an answer, so what it says is not the answer itself.
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

// openCap takes an object apart. The reading has no members when nothing in it
// can be relied upon.
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

// says reads what a message of a type says to somebody about a task.
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
	if m.Act != envelope.Fails { // which has none, so they would be an unknown field
		m.Attachments = r.attachments("attachments")
	}
	switch {
	case string(m.Task) == task:
	case asks(m.Act): // no name for a file: what is said of the task later needs the other one
		m.ID = task
	default:
		m.Cause = task
	}
	m.Extra = r.strangers()
}

// does reads what a message of a type does, and what only such a message has.
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

// capThread is the first segment of a dotted task id: the conversation (CAP-21).
func capThread(task string) string {
	if root, _, _ := strings.Cut(task, "."); root != "" {
		return root
	}
	return task
}

// ask makes the request of a message that asks for something. CAP limits
// nothing, so nothing is limited but by what holds for everybody.
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
