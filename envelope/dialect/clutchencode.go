package dialect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Encode writes a message in the form that every reader of Clutch accepts (F14): parent_task_id
// is there, ts is in UTC with milliseconds, from begins with "agent:", and no member is
// unknown.
func (clutchCodec) Encode(m envelope.Message) (said []byte, lost []string) {
	at := m.Time
	if at.IsZero() {
		at = time.Now()
	}
	c, asked := cmp.Or(PartOf(m), new(envelope.ClutchPart)), cmp.Or(m.Asked, new(envelope.ClutchPart))
	word := clutchType(m)
	task := clutchTask(m)
	run := cmp.Or(c.RunID, m.Trace, task)
	var w writer
	w.word("v", clutchVersion)
	w.word("id", clutchID(m))
	w.word("ts", at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z"))
	w.word("thread_id", cmp.Or(m.Thread, run))
	w.word("run_id", run)
	w.word("task_id", task)
	w.add("parent_task_id", nullable(parentOf(m, task)))
	w.add("trace", traceValue(cmp.Or(c.Trace, asked.Trace)))
	w.add("from", senderValue(cmp.Or(m.From, envelope.Mailboxd), c.Role))
	w.add("to", partiesValue(m))
	w.word("type", word)
	w.word("domain", cmp.Or(c.Domain, asked.Domain))
	w.word("payload_type", payloadType(m, c, word))
	w.word("schema_ref", schemaRef(c, word))
	w.add("payload", clutchPayload(m, word))
	w.add("requires", someNames(c.Requires))
	w.add("prefers", someNames(c.Prefers))
	w.add("security", securityValue(m))
	w.add("attachments", clutchAttachments(m))
	w.word("idempotency_key", c.IdempotencyKey)
	if c.Attempt > 1 {
		w.add("attempt", strconv.AppendInt(nil, int64(c.Attempt), 10))
	}
	w.add("meta", clutchMeta(m))
	return line(w.end()), clutchLosses(m)
}

// clutchType returns the type of a message's act.
func clutchType(m envelope.Message) string {
	ours := m.From == envelope.Mailboxd || m.From == ""
	if m.Clutch != nil && m.Clutch.Type != "" && sameAct(m) && (m.Clutch.Type != "chat.system" || ours) {
		return m.Clutch.Type
	}
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		return "task.request"
	case envelope.Waits:
		return "task.progress"
	case envelope.Stops:
		return "task.cancel"
	case envelope.Fails:
		switch clutchWrong(m).Kind {
		case envelope.Timeout, envelope.IdleTimeout, envelope.ExitTimeout, envelope.DeadlineExceeded:
			return "task.timeout"
		case envelope.Cancelled:
			return "task.cancel"
		}
		return "task.error"
	case envelope.Informs:
		if !ours {
			return "chat.message"
		}
		return "chat.system"
	case envelope.Asks, envelope.ReportsStatus, envelope.Inquires:
		return "chat.message"
	}
	for _, word := range slices.Sorted(maps.Keys(clutchActs)) {
		if clutchActs[word] == m.Act {
			return word
		}
	}
	return "chat.message"
}

// sameAct reports whether the act of a message that was read in Clutch is still that of its
// type.
func sameAct(m envelope.Message) bool {
	was := clutchActs[m.Clutch.Type]
	switch m.Act {
	case envelope.Delegates:
		return was == envelope.Requests
	case envelope.Waits:
		return was == envelope.Reports
	case envelope.Stops, envelope.Fails:
		return was == envelope.Cancels || was == envelope.Fails
	case envelope.Asks, envelope.ReportsStatus, envelope.Inquires:
		return was == envelope.Informs
	}
	return was == m.Act
}

// clutchID returns the id of a message. A generated one begins with "msg_" (CLUTCH-75).
func clutchID(m envelope.Message) string {
	switch {
	case m.ID != "":
		return m.ID
	case asks(m.Act) && (m.Request.ID != "" || m.Task != ""):
		return "msg_" + string(cmp.Or(m.Request.ID, m.Task))
	}
	return NewMessageID(envelope.Clutch)
}

// NewMessageID returns a new id for a message; "" in a dialect whose messages have no ids.
func NewMessageID(d envelope.Dialect) string {
	switch d {
	case envelope.CLowl:
		return NewID()
	case envelope.Clutch:
		return "msg_" + NewID()
	}
	return ""
}

// clutchTask returns the task_id that a message is about: as its sender wrote it, unless the
// task has another name by now.
func clutchTask(m envelope.Message) string {
	if m.Clutch != nil && m.Clutch.TaskID != "" && (m.Task == "" || TaskID(m.Clutch.TaskID) == m.Task) {
		return m.Clutch.TaskID
	}
	return cmp.Or(string(m.Task), string(m.Request.ID), m.Cause, m.Thread, messageID(m))
}

// parentOf returns the parent of the task that a message is about; "" for none.
func parentOf(m envelope.Message, task string) string {
	above := ""
	switch {
	case m.Clutch != nil:
		above = string(m.Clutch.Parent)
	case m.Act == envelope.Requests:
		above = m.Request.Named(envelope.ParentTask)
	case m.Act == envelope.Delegates && m.Dialect == envelope.CAP:
		if at := strings.LastIndexByte(task, '.'); at > 0 {
			above = task[:at]
		}
	case m.Act == envelope.Delegates:
		above = cmp.Or(m.Request.Named(envelope.ParentTask), m.Cause)
	}
	if above == task {
		return ""
	}
	return above
}

func nullable(text string) jsontext.Value { // parent_task_id is always there (F14)
	if text == "" {
		return jsontext.Value("null")
	}
	return quoted(text)
}

func traceValue(t envelope.Trace) jsontext.Value {
	var w writer
	w.word("trace_id", t.TraceID)
	w.word("span_id", t.SpanID)
	if w.text == nil {
		return nil
	}
	return w.end()
}

func senderValue(name, role string) jsontext.Value {
	var w writer
	w.word("agent_id", agentPrefix+name)
	w.word("role", role)
	return w.end()
}

// partiesValue returns the member to. Everybody becomes a group: Clutch has no other word for
// recipients without names.
func partiesValue(m envelope.Message) jsontext.Value {
	list := []jsontext.Value{}
	for _, name := range m.To {
		switch {
		case name == envelope.Everybody:
			name = groupPrefix + "all"
		case m.Clutch == nil || !slices.ContainsFunc(m.Clutch.Recipients, func(r envelope.Recipient) bool { return r.Group && r.String() == name }):
			name = agentPrefix + name
		}
		list = append(list, object(map[string]jsontext.Value{"agent_id": quoted(name)}))
	}
	return array(list)
}

// errorType is the payload type of an error if its agent names none (section 5.4).
const errorType = "task.error.v1"

// payloadType returns the payload type: for a request its own type, else the one that the
// sender named. An error does not have the payload type that its agent named for a result.
func payloadType(m envelope.Message, c *envelope.ClutchPart, word string) string {
	switch {
	case m.Clutch == nil && word == "task.request":
		return cmp.Or(m.Type, m.Request.Type)
	case !isError(word):
	case m.Clutch == nil && isError(c.Type):
		return cmp.Or(c.PayloadType, errorType)
	case m.Clutch == nil:
		return errorType
	case !isError(c.Type):
		return ""
	}
	return c.PayloadType
}

// schemaRef returns the schema of the payload. An error does not have the schema of the result
// (CLUTCH-14).
func schemaRef(c *envelope.ClutchPart, word string) string {
	if isError(word) && !isError(c.Type) {
		return ""
	}
	return c.SchemaRef
}

// isError reports whether a message of a type has the payload of an error, and ends its task.
func isError(word string) bool { return word == "task.error" || word == "task.timeout" }

// someNames returns a list of names; nil for an empty one.
func someNames(names []string) jsontext.Value {
	if len(names) == 0 {
		return nil
	}
	return namesValue(names)
}

// securityValue returns the limits of the message, without its signature: that signs other
// bytes.
func securityValue(m envelope.Message) jsontext.Value {
	policy := envelope.SecurityPolicy{ToolAllowlist: m.Request.AllowedTools}
	if m.Clutch != nil {
		policy = m.Clutch.SecurityPolicy
	}
	if policy.Sandbox == nil && policy.ToolAllowlist == nil && policy.Network == "" {
		return nil
	}
	var w writer
	w.add("sandbox", boolean(policy.Sandbox != nil && *policy.Sandbox)) // the reference schema requires it
	w.add("tool_allowlist", namesValue(policy.ToolAllowlist))
	w.word("network", string(policy.Network))
	return object(map[string]jsontext.Value{"policy": w.end()})
}

// clutchAttachments returns the attachments of a message: its own, or the references of a
// request or an answer in another dialect.
func clutchAttachments(m envelope.Message) jsontext.Value {
	var list []envelope.ClutchAttachment
	if c := PartOf(m); c != nil {
		list = c.Attachments
	} else {
		for _, ref := range slices.Concat(m.Request.Refs, m.Answer.Artifacts) {
			list = append(list, attachmentOf(ref.URI))
		}
		if ref := contextURI(m.Context.Ref); m.Context.Ref != "" && len(m.Request.Refs) == 0 {
			list = append(list, attachmentOf(ref))
		}
		if m.Context.Inline != "" {
			list = append(list, envelope.ClutchAttachment{Kind: "inline", Content: quoted(m.Context.Inline)})
		}
	}
	return clutchThings(list)
}

func clutchThings(list []envelope.ClutchAttachment) jsontext.Value {
	if len(list) == 0 {
		return nil
	}
	values := make([]jsontext.Value, len(list))
	for i, a := range list {
		var w writer
		w.word("kind", a.Kind)
		w.word("ref", a.Ref)
		w.add("content", a.Content)
		w.word("url", a.URL)
		w.word("mime_type", a.MIMEType)
		values[i] = w.end()
	}
	return array(values)
}

func attachmentOf(uri string) envelope.ClutchAttachment {
	if strings.HasPrefix(uri, "artifact:") {
		return envelope.ClutchAttachment{Kind: "artifact_ref", Ref: uri}
	}
	return envelope.ClutchAttachment{Kind: "url", URL: uri}
}
