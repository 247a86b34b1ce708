package dialect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// formed are the acts whose payload has a defined form. Messages of other senders get it too.
var formed = []envelope.Act{
	envelope.Completes, envelope.Fails, envelope.FailsTool, envelope.Reports, envelope.Waits, envelope.Announces, envelope.Updates,
}

// clutchPayload returns the payload of a message: its own if it was read in Clutch, else one
// made of its meaning.
func clutchPayload(m envelope.Message, word string) jsontext.Value {
	own := m.Clutch != nil && m.Clutch.Payload != nil && word == m.Clutch.Type
	if own && !slices.Contains(formed, m.Act) {
		return m.Clutch.Payload
	}
	p := map[string]jsontext.Value{}
	say := func(name, text string) {
		if text != "" {
			p[name] = quoted(text)
		}
	}
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		return clutchAsking(m)
	case envelope.Completes:
		return clutchAnswer(m)
	case envelope.Accepts:
		say("status", "accepted")
	case envelope.Reports, envelope.Waits:
		return clutchProgress(m)
	case envelope.Fails, envelope.FailsTool:
		return clutchError(m)
	case envelope.Stops:
		say("status", string(envelope.Stopped))
		say("message", m.Text)
	case envelope.Cancels:
		say("reason", m.Text)
	case envelope.Announces, envelope.Updates:
		return cardOf(m)
	case envelope.Routes, envelope.FailsToRoute:
		p = routingMembers(m.Data)
		say("text", m.Text)
	default:
		p = ownMembers(m)
		say("text", m.Text)
	}
	return object(p)
}

// ownMembers returns the members of the machine-readable data of a message.
func ownMembers(m envelope.Message) map[string]jsontext.Value {
	p := maps.Clone(membersOf(m.Data))
	if p == nil {
		p = map[string]jsontext.Value{}
	}
	if len(m.Attachments) > 0 && p["attachments"] == nil {
		p["attachments"] = attachmentsValue(m.Attachments)
	}
	return p
}

// worded are the names in the payload of a request with a meaning of their own. Members of
// another payload cannot have them.
var worded = []string{"title", "description", "input", "constraints"}

// clutchAsking returns the meaning of a request of another dialect: its payload, flat, its
// text, and the limits that Clutch has.
func clutchAsking(m envelope.Message) jsontext.Value {
	t := m.Request
	p := membersOf(t.Payload)
	own := func(name string) bool { return p[name] != nil }
	switch {
	case t.Payload == nil:
		p = map[string]jsontext.Value{}
	case p == nil || slices.ContainsFunc(worded, own):
		p = map[string]jsontext.Value{"input": t.Payload}
	}
	text := cmp.Or(t.Description, m.Text)
	title, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	p["title"] = quoted(cmp.Or(strings.TrimSpace(title), m.Type, t.Type, "task"))
	p["description"] = quoted(text)
	var constraints writer
	constraints.add("max_tokens", numberValue(t.Budget.Tokens))
	if t.Budget.USDCents != nil {
		constraints.add("max_cost", jsontext.Value(dollars(*t.Budget.USDCents)))
	}
	if constraints.text != nil {
		p["constraints"] = constraints.end()
	}
	return object(p)
}

// dollars writes cents as a number of dollars, exactly.
func dollars(cents int64) string {
	whole, rest := cents/100, cents%100
	switch {
	case rest == 0:
		return strconv.FormatInt(whole, 10)
	case rest < 10:
		return strconv.FormatInt(whole, 10) + ".0" + strconv.FormatInt(rest, 10)
	}
	return strconv.FormatInt(whole, 10) + "." + strconv.FormatInt(rest, 10)
}

// clutchAnswer writes an answer in both forms: its fields at the top, and wrapped (CLUTCH-35).
func clutchAnswer(m envelope.Message) jsontext.Value {
	a := m.Answer
	output := membersOf(a.Output.Extra)
	if output == nil {
		output = map[string]jsontext.Value{}
	}
	if actions := membersOf(outputOf(a))["actions"]; len(a.Output.Actions) > 0 {
		output["actions"] = actions
	}
	if len(m.Attachments) > 0 && output["attachments"] == nil && m.Dialect != envelope.Clutch {
		output["attachments"] = attachmentsValue(m.Attachments)
	}
	p := maps.Clone(output)
	p["output"] = object(output)
	p["success"] = boolean(true)
	p["summary"] = quoted(cmp.Or(a.Output.Summary, m.Text))
	if a.Status == envelope.Partial {
		p["status"] = quoted(string(a.Status))
	}
	if a.Confidence != nil {
		p["confidence"] = membersOf(a.EncodeLine())["confidence"]
	}
	return object(p)
}

// clutchProgress writes how far a task is, or why it waits.
func clutchProgress(m envelope.Message) jsontext.Value {
	said, p := membersOf(m.Data), map[string]jsontext.Value{}
	if m.Clutch != nil {
		p = ownPayload(m)
	}
	if reasons := said["blocked"]; reasons.Kind() == '[' && m.Act == envelope.Waits {
		p["reasons"] = reasons
	}
	if failure := said["error"]; failure.Kind() == '{' { // of a failed attempt
		p["error"] = failure
	}
	delete(p, "progress")
	if pct := progressOf(m); pct != nil {
		p["progress"] = pct
	}
	if status, _ := textOf(p["status"]); status == "" || (status == "waiting") != (m.Act == envelope.Waits) {
		p["status"] = quoted(map[bool]string{true: "waiting", false: "running"}[m.Act == envelope.Waits])
	}
	if p["message"].Kind() != '"' {
		p["message"] = quoted(m.Text)
	}
	return unlessOwn(m, p)
}

// unlessOwn returns a payload; the sender's own bytes if both have the same content.
func unlessOwn(m envelope.Message, p map[string]jsontext.Value) jsontext.Value {
	same := func(a, b jsontext.Value) bool { return string(a) == string(b) }
	if m.Clutch != nil && maps.EqualFunc(p, membersOf(m.Clutch.Payload), same) {
		return m.Clutch.Payload
	}
	return object(p)
}

// progressOf returns how far a task is, from 0 to 100; nil if unknown. CLowl calls it pct.
func progressOf(m envelope.Message) jsontext.Value {
	said := membersOf(m.Data)
	for _, value := range []jsontext.Value{said["progress"], said["pct"]} {
		if n, err := strconv.ParseFloat(string(value), 64); value.Kind() == '0' && err == nil && n >= 0 && n <= 100 {
			return value
		}
	}
	return nil
}

// ownPayload returns the members of the payload of a message that was read in Clutch. The
// caller may change them.
func ownPayload(m envelope.Message) map[string]jsontext.Value {
	p := membersOf(m.Clutch.Payload)
	if p == nil {
		p = map[string]jsontext.Value{}
	}
	return p
}

// clutchWrong returns the failure that a message reports.
func clutchWrong(m envelope.Message) envelope.Failure {
	f := m.Failure
	f.Kind = cmp.Or(f.Kind, m.Answer.Error.Kind, envelope.AgentError)
	f.Message = cmp.Or(f.Message, m.Answer.Error.Message, m.Text, m.Answer.Output.Summary)
	return f
}

// clutchError writes an error: its code, and the exact kind in details, because there are more
// kinds than codes (CLUTCH-83).
func clutchError(m envelope.Message) jsontext.Value {
	f := clutchWrong(m)
	code, retryable := ClutchCodeOf(f)
	retryable = retryable && !m.Answer.Error.Final || m.Answer.Error.Again
	p := map[string]jsontext.Value{"details": keptDetails(m)}
	if m.Clutch != nil {
		p = ownPayload(m)
	}
	p["code"], p["message"], p["details"] = quoted(code), quoted(f.Message), errorDetails(m, f, code, p["details"])
	if said := p["retryable"].Kind(); said != 't' && said != 'f' {
		p["retryable"] = boolean(retryable)
	}
	if f.Kind == envelope.Cancelled {
		p["status"] = quoted(string(envelope.Stopped))
	}
	return unlessOwn(m, p)
}

// errorDetails returns the details of an error: its sender's own, with the exact kind, and its
// code in another dialect.
func errorDetails(m envelope.Message, f envelope.Failure, code string, own jsontext.Value) jsontext.Value {
	details := membersOf(own)
	if details == nil {
		details = map[string]jsontext.Value{}
	}
	before := maps.Clone(details)
	foreign := f.Code != "" && f.Code != code
	if foreign {
		details["code"] = quoted(f.Code)
	}
	if foreign || m.Clutch == nil || details["kind"] != nil || len(details) == 0 {
		details["kind"] = quoted(string(f.Kind)) // without it, the code beside it isn't read
	}
	same := func(a, b jsontext.Value) bool { return string(a) == string(b) }
	if own != nil && maps.EqualFunc(before, details, same) {
		return own
	}
	return object(details)
}

// cardOf returns the announcement of an agent as an AgentCard: its own card, with the members
// that every card has.
func cardOf(m envelope.Message) jsontext.Value {
	if m.Clutch != nil && m.Clutch.Card != nil {
		p := ownPayload(m)
		if p["endpoints"].Kind() != '{' {
			p["endpoints"] = jsontext.Value("{}")
		}
		return unlessOwn(m, p)
	}
	capabilities := make([]jsontext.Value, len(m.Supports))
	for i, name := range m.Supports {
		if !strings.HasPrefix(name, "tool:") {
			name = "skill:" + name
		}
		capabilities[i] = object(map[string]jsontext.Value{"id": quoted(name)})
	}
	name := cmp.Or(m.From, envelope.Mailboxd)
	return object(map[string]jsontext.Value{
		"v": quoted(clutchVersion), "agent_id": quoted(agentPrefix + name), "display": object(map[string]jsontext.Value{"name": quoted(name)}),
		"endpoints": jsontext.Value("{}"), "capabilities": array(capabilities),
	})
}
