package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// feedback is the payload type with which a reviewer decides about a result (CLUTCH-92).
const feedback = "review.feedback.v1"

// act reads the act of a message, and the members of the payload that its type has.
func (r *clutchReading) act() {
	m, c := &r.message, r.part
	said, _ := textOf(r.members["type"])
	c.Type = r.typed()
	switch said {
	case "PLAN":
		c.Domain = cmp.Or(c.Domain, "planning")
	case "REVIEW":
		c.PayloadType = cmp.Or(c.PayloadType, feedback)
	}
	m.Act, m.Type = clutchActs[c.Type], cmp.Or(c.PayloadType, c.Domain)
	switch m.Act {
	case envelope.Requests:
		m.Type = cmp.Or(m.Type, plainTypes["REQ"])
		m.Text = r.asking()
		if c.Parent != "" {
			m.Act, m.Tie = envelope.Delegates, envelope.Assist
		}
	case envelope.Reports:
		m.Text = r.said("message", "note", "text")
		if r.said("status") == "waiting" {
			m.Act = envelope.Waits
		}
	case envelope.Completes:
		r.complete()
	case envelope.Fails:
		r.fail()
	case envelope.Cancels:
		r.cancel()
	case envelope.Informs:
		r.chat()
	case envelope.Announces, envelope.Updates:
		r.announce()
	case envelope.Calls:
		r.wants("tool")
	case envelope.FailsTool:
		m.Failure = r.failure(envelope.DependencyFailed)
		m.Text = m.Failure.Message
	case envelope.Routes:
		r.wants("selected", "reason")
		r.decision()
	case envelope.FailsToRoute:
		r.wants("reason")
	default:
		m.Text = r.said("message", "text", "reason")
	}
	r.clowlMeta()
}

// said returns the first of these members of the payload that is a text. If the payload is a
// text, it returns that.
func (r *clutchReading) said(names ...string) string {
	if text, ok := textOf(r.part.Payload); ok {
		return text
	}
	for _, name := range names {
		if text, ok := textOf(r.payload.members[name]); ok && text != "" {
			return text
		}
	}
	return ""
}

// asking returns the text of a request.
func (r *clutchReading) asking() string {
	title, words := r.said("title"), r.said("description")
	switch {
	case title == "" || title == words:
		return words
	case words == "":
		return title
	}
	return title + "\n" + words
}

// complete reads the payload of a task.result: the fields of the output at its top, or in
// output, or both (CLUTCH-35). A payload that reports no success is a failure (CLUTCH-82).
func (r *clutchReading) complete() {
	m := &r.message
	m.Text = r.said("summary", "title", "comments")
	if r.payload.members["success"].Kind() == 'f' {
		m.Act = envelope.Fails
		m.Failure = r.failure(envelope.AgentError)
		m.Failure.Message = cmp.Or(m.Failure.Message, m.Text)
		m.Answer = r.failed(m.Failure)
		return
	}
	m.Answer = r.answer()
}

// fail reads a task.error or a task.timeout (CLUTCH-31, CLUTCH-83).
func (r *clutchReading) fail() {
	m, otherwise := &r.message, envelope.InternalError
	if r.part.Type == "task.timeout" {
		otherwise = envelope.Timeout
	}
	m.Failure = r.failure(otherwise)
	m.Text, m.Answer = m.Failure.Message, r.failed(m.Failure)
}

// cancel reads a task.cancel: a request to cancel a task, or the report that the task is
// cancelled.
func (r *clutchReading) cancel() {
	m := &r.message
	m.Text = r.said("message", "reason")
	if r.said("status") != string(envelope.Stopped) {
		return
	}
	if m.Act = envelope.Stops; r.payload.members["code"] == nil {
		return
	}
	m.Act, m.Failure = envelope.Fails, r.failure(envelope.Cancelled)
	m.Failure.Kind = envelope.Cancelled
	m.Answer = r.failed(m.Failure)
}

// chat reads a chat.message by its meta.intent (CLUTCH-32).
func (r *clutchReading) chat() {
	m, c := &r.message, r.part
	m.Text = r.said("text", "message", "content", "title")
	switch {
	case c.Type != "chat.message":
	case c.Intent == "status" && r.payload.members["state"] != nil:
		m.Act, m.Type = envelope.ReportsStatus, "status"
	case c.Intent == "status":
		m.Act, m.Type = envelope.Asks, "status"
	case c.Intent == "oversight":
		m.Act, m.WantsReply = envelope.Inquires, true
	case c.Intent == "question":
		m.WantsReply = true
	}
}

// wants requires members of the payload that are names.
func (r *clutchReading) wants(names ...string) {
	if r.payload.members == nil {
		r.refuse("payload", "must be an object")
		return
	}
	for _, name := range names {
		r.payload.name(name, r.payload.required(name))
	}
	r.message.Text = r.said("message", "reason", "tool")
}

// decision reads a routing.decision (CLUTCH-36).
func (r *clutchReading) decision() {
	if r.payload.members == nil {
		return
	}
	r.payload.names("candidates", r.payload.required("candidates"))
	if scores := r.payload.required("scores"); scores != nil && scores.Kind() != '{' {
		r.payload.refuse("scores", "must be an object")
	}
}

// announce reads the card in an announcement (CLUTCH-34).
func (r *clutchReading) announce() {
	m := &r.message
	card, findings := envelope.DecodeCard(r.part.Payload)
	for _, f := range findings {
		f.Field = strings.TrimSuffix("payload."+f.Field, ".")
		if f.Kind == envelope.InvalidJSON {
			f.Kind = envelope.InvalidEnvelope
		}
		r.findings = append(r.findings, f)
	}
	if findings.Refused() {
		return
	}
	r.part.Card = &card
	if card.AgentID != m.From && m.From != "" {
		r.refuse("payload.agent_id", "must be the sender")
	}
	m.Supports = []string{}
	for _, capability := range card.Capabilities {
		if name := skillOf(capability.ID); !slices.Contains(m.Supports, name) {
			m.Supports = append(m.Supports, name)
		}
	}
}

// skillOf returns a capability without the prefix of a skill.
func skillOf(capability string) string { return strings.TrimPrefix(capability, "skill:") }

// ask makes the request of a message.
func (r *clutchReading) ask() {
	m := &r.message
	if !asks(m.Act) {
		return
	}
	m.Request = envelope.Task{
		Raw: m.Raw, Hash: m.Hash, ID: m.Task, Agent: r.agent(), Requester: m.From, Type: m.Type, Description: m.Text,
		Payload: r.part.Payload, Clutch: r.part,
	}
	if !r.findings.Refused() {
		r.limit()
	}
}

// agent returns the only recipient of a request; "" for several, or if the router chooses.
func (r *clutchReading) agent() string {
	if c := r.part; len(c.Recipients) == 1 && !c.Routed() {
		return c.Recipients[0].Name
	}
	return ""
}

// answer reads the payload of a task.result as an answer.
func (r *clutchReading) answer() envelope.Result {
	ainl := membersOf(membersOf(r.part.Meta)["ainl"])
	output := r.output()
	var w writer
	w.word("schema_version", envelope.SchemaVersion)
	status := envelope.OK
	if r.said("status") == string(envelope.Partial) {
		status = envelope.Partial
	}
	w.word("status", string(status))
	w.add("output", object(output))
	for _, name := range answerFields {
		value := ainl[name]
		switch {
		case name == "artifact_refs" && value == nil:
			value = attachedRefs(r.part.Attachments)
		case name == "confidence" && value == nil && r.payload.members["confidence"].Kind() == '0':
			value = r.payload.members["confidence"]
		}
		w.add(name, value)
	}
	w.add(keptClutch, keptPart(r.part, nil))
	a, findings := envelope.DecodeAnswer(w.end())
	a.Cost = cmp.Or(a.Cost, Usage(r.payload.members["usage"]))
	if findings.Refused() { // the members have another meaning here
		a = envelope.Result{Status: status}
		a.Output.Summary = r.message.Text
		a.Output.Extra = object(map[string]jsontext.Value{"result": r.part.Payload})
		return a
	}
	for _, f := range findings {
		f.Field = "payload." + f.Field
		r.findings = append(r.findings, f)
	}
	return a
}

// output returns the members of the output of a task.result: those in output, and other members
// at the top of the payload.
func (r *clutchReading) output() map[string]jsontext.Value {
	c := r.part
	if r.payload.members == nil {
		if text, ok := textOf(c.Payload); ok {
			return map[string]jsontext.Value{"summary": quoted(text)}
		}
		return map[string]jsontext.Value{"result": c.Payload}
	}
	all := membersOf(r.payload.members["output"])
	wrapped := r.payload.members["success"] != nil
	if all == nil {
		all = map[string]jsontext.Value{}
	}
	for name, value := range r.payload.members {
		switch {
		case wrapped && name == "success":
		case name == "output": // below
		case name == "status" && isStatus(value):
		case name == "confidence" && wrapped && value.Kind() == '0': // it belongs to the answer, not to its output
		case all[name] == nil:
			all[name] = value
		}
	}
	switch output := r.payload.members["output"]; {
	case output == nil || output.Kind() == '{':
	case wrapped && all["result"] == nil: // such as a text
		all["result"] = output
	default:
		all["output"] = output
	}
	if all["summary"].Kind() != '"' {
		all["summary"] = quoted(r.message.Text)
	}
	return all
}

// isStatus reports whether a value is a status that mailboxd writes.
func isStatus(value jsontext.Value) bool {
	word, _ := textOf(value)
	return word == string(envelope.OK) || word == string(envelope.Partial)
}
