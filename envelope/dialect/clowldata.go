package dialect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// clowlData returns the d of a message: its own data if it was read in CLowl, else data made of
// its meaning, and in both cases the members that its performative requires.
func clowlData(m envelope.Message) jsontext.Value {
	own := m.Data != nil && (m.Dialect == envelope.CLowl || m.Dialect == "")
	var d map[string]jsontext.Value
	if own {
		d = membersOf(m.Data)
	}
	if d == nil {
		own, d = false, meant(m)
	}
	before := maps.Clone(d)
	oblige(m, d)
	same := func(a, b jsontext.Value) bool { return string(a) == string(b) }
	if own && maps.EqualFunc(before, d, same) {
		return m.Data
	}
	return object(d)
}

// meant returns the meaning of a message as members of d.
func meant(m envelope.Message) map[string]jsontext.Value {
	d := map[string]jsontext.Value{}
	say := func(name, text string) {
		if text != "" {
			d[name] = quoted(text)
		}
	}
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		return asking(m)
	case envelope.Completes:
		d = answerData(m.Answer)
		if d["summary"] == nil {
			say("summary", m.Text)
		}
	case envelope.Reports, envelope.Waits:
		if pct := progressOf(m); pct != nil {
			d["pct"] = pct
		}
		say("note", m.Text)
	case envelope.Fails, envelope.Announces: // oblige adds the members
	default:
		say("text", m.Text)
	}
	if len(m.Attachments) > 0 && d["attachments"] == nil {
		d["attachments"] = attachmentsValue(m.Attachments)
	}
	return d
}

// taken are the names in d with a meaning of their own. Members of a payload cannot have them.
var taken = []string{"description", "deadline", "ainl", "delegation_mode", "payload"}

// asking returns the meaning of a request of another dialect: its payload, flat, its
// description, and its limits in d.ainl (mapping 2.5).
func asking(m envelope.Message) map[string]jsontext.Value {
	t := m.Request
	d := membersOf(t.Payload)
	own := func(name string) bool { return d[name] != nil }
	switch {
	case t.Payload == nil:
		d = map[string]jsontext.Value{}
	case d == nil || slices.ContainsFunc(taken, own):
		d = map[string]jsontext.Value{"payload": t.Payload}
	}
	if text := cmp.Or(t.Description, m.Text); text != "" {
		d["description"] = quoted(text)
	}
	ainl := limitsOf(t)
	if t.Role != "" {
		ainl["target_role"] = quoted(t.Role)
	}
	if len(t.Metadata) > 0 {
		ainl["metadata"] = object(t.Metadata)
	}
	if len(t.Refs) > 0 {
		ainl["refs"] = refsValue(t.Refs)
	}
	if len(ainl) > 0 {
		d["ainl"] = object(ainl)
	}
	return d
}

// oblige adds the members that the performative of a message requires.
func oblige(m envelope.Message, d map[string]jsontext.Value) {
	switch m.Act {
	case envelope.Fails:
		obligeFailure(m, d)
	case envelope.Delegates:
		d["delegation_mode"] = quoted(string(cmp.Or(m.Tie, envelope.Fork)))
	case envelope.Stops:
		d["status"] = quoted(string(envelope.Stopped))
	case envelope.Waits:
		if !blocking(d["blocked"]) {
			d["blocked"] = jsontext.Value("true")
		}
	case envelope.Reports:
		if blocking(d["blocked"]) {
			delete(d, "blocked")
		}
	case envelope.ReportsStatus:
		if d["state"] == nil {
			d["state"] = quoted("unknown")
		}
	case envelope.Announces:
		if d["supports"] == nil {
			d["supports"] = namesValue(append([]string{}, m.Supports...))
		}
		d["clowl"] = quoted(clowlVersion)
	}
	if m.WantsReply && !asks(m.Act) && performativeOf(m) != "QRY" {
		d[expectsAnswer] = jsontext.Value("true")
	}
}

// obligeFailure adds the members of an ERR (CLOWL-26), and the exact kind, because there are
// more kinds than codes.
func obligeFailure(m envelope.Message, d map[string]jsontext.Value) {
	f := m.Failure
	f.Kind = cmp.Or(f.Kind, m.Answer.Error.Kind, envelope.AgentError)
	f.Message = cmp.Or(f.Message, m.Answer.Error.Message, m.Text, m.Answer.Output.Summary)
	own, _, retry := Code(f.Kind)
	code := own
	if m.Failure.Kind != "" || m.Failure.Code != "" {
		retry = f.Retry
	}
	if isCode(f.Code) {
		code = f.Code
	}
	if said, _ := textOf(d["code"]); said != code {
		d["code"] = quoted(code)
		if said != "" && !isCode(said) {
			d["msg"] = quoted(f.Message) // the field in the text
		}
	}
	if d["msg"].Kind() != '"' {
		d["msg"] = quoted(f.Message)
	}
	if kind := d["retry"].Kind(); kind != 't' && kind != 'f' {
		d["retry"] = boolean(retry)
	}
	if own == code && m.Dialect != envelope.CLowl {
		d["kind"] = quoted(string(f.Kind))
	}
}

// clowlLosses returns what CLowl has no words of its own for (docs/dialects.md).
func clowlLosses(m envelope.Message) []string {
	var lost losses
	lost.add("unknown fields", m.Extra != nil)
	if m.Dialect == envelope.CLowl {
		return lost
	}
	if asks(m.Act) {
		lost.task(m.Request)
		lost.add("references", len(m.Request.Refs) > 1)
	}
	if m.Act == envelope.Completes {
		lost.answer(m.Answer)
		lost.add("artifacts", len(m.Answer.Artifacts) > 0)
	}
	if m.Dialect == envelope.Clutch {
		lost.clutch(m)
		lost.add("milliseconds", m.Time.Nanosecond() != 0)
		lost.add("group", slices.ContainsFunc(m.Clutch.Recipients, func(r envelope.Recipient) bool { return r.Group }))
	}
	if m.Dialect == envelope.CAP {
		code, _ := strconv.Atoi(m.Failure.Code)
		_, ok := kindOfCAP(code)
		lost.add("codes", m.Failure.Code != "" && !ok)
		lost.add("python_object", slices.ContainsFunc(m.Attachments, func(a envelope.Attachment) bool { return a.Type == "python_object" }))
	}
	return lost
}
