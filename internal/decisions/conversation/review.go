package conversation

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Decision is an overseer's decision about an answer (CAP-24). The zero value is none.
type Decision string

// The decisions.
const (
	Approves  Decision = "approved"
	SendsBack Decision = "needs_revision" // the agent has to add or change something
	Rejects   Decision = "rejected"
	Unable    Decision = "unable" // the run ended without a decision
)

// A Review holds the outcome of an overseer's run.
type Review struct {
	Messages  []envelope.Message // messages beside its answer
	Answer    envelope.Result    // its answer, unless it Waits
	Waits     bool               // it has no answer yet and waits for a message or a task
	Broken    bool               // the run failed
	Dialect   envelope.Dialect   // of the overseer
	Worker    string             // the agent with the answer in review
	Requester string             // the requester of that answer
	Tasks     []envelope.ID      // the overseer's task and the task in review
	Seen      []jsontext.Value   // content given for review; a decision in it isn't the overseer's
}

// Decide returns the decision of an overseer and its text. A question to the worker
// overrides an approval. An unclear answer is no decision. An AINL agent gives its decision
// as a member of its output.
func (r Review) Decide() (d Decision, words string) {
	approved := ""
	for _, m := range r.Messages {
		switch said := r.decides(m); said {
		case SendsBack, Rejects:
			return said, m.Text
		case Approves:
			d, approved = said, m.Text
		}
	}
	switch {
	case r.Waits:
		return d, approved
	case r.Broken:
		return Unable, r.Answer.Error.Message
	case r.Answer.Status == envelope.Failed:
		return Rejects, r.Answer.Error.Message
	case d == Approves:
		return d, approved
	}
	if d := cmp.Or(decision(r.Answer.Output.Extra), r.outputDecision(r.Answer.Output.Extra)); d != "" {
		return d, r.Answer.Output.Summary
	}
	if d := decision(r.Answer.Extra); d != "" {
		return d, r.Answer.Output.Summary
	}
	if r.Dialect == envelope.CAP && r.Answer.Output.Summary != "" {
		return SendsBack, r.Answer.Output.Summary // its message to the worker is a question
	}
	return Unable, "it answered without a decision"
}

// decides returns the decision in one message of an overseer.
func (r Review) decides(m envelope.Message) Decision {
	if m.Task != "" && !slices.Contains(r.Tasks, m.Task) {
		return "" // about another task
	}
	switch m.Act { // these two may quote a decision of another agent
	case envelope.Inquires:
		return SendsBack
	case envelope.Fails:
		return Rejects
	}
	if d := r.messageDecision(m); d != "" {
		return d
	}
	switch {
	case m.Act == envelope.Informs && m.Dialect == envelope.CLowl && m.Type == "approve":
		return Approves
	case m.Act != envelope.Informs && m.Act != envelope.Completes && m.Act != envelope.Asks:
		return ""
	case slices.Contains(m.To, r.Worker):
		return SendsBack
	case slices.Contains(m.To, r.Requester) && m.Dialect != envelope.CLowl && !r.asksFirst(): // CLowl has the type approve for this
		return Approves
	}
	return ""
}

// asksFirst reports whether the overseer asks or delegates before it decides. Then its message
// to the requester isn't an approval.
func (r Review) asksFirst() bool {
	return slices.ContainsFunc(r.Messages, func(m envelope.Message) bool {
		return m.WantsReply || m.Act == envelope.Asks || m.Act == envelope.Delegates && m.Tie != envelope.Fork
	})
}

// messageDecision returns the machine-readable decision of a message.
func (r Review) messageDecision(m envelope.Message) Decision {
	if d := decision(m.Data); d != "" {
		return d
	}
	for _, a := range m.Attachments {
		if d := r.attachmentDecision(a.Raw); d != "" {
			return d
		}
	}
	return ""
}

// outputDecision returns the machine-readable decision of a CAP answer. The attachments of the
// answer are a member of its output.
func (r Review) outputDecision(output jsontext.Value) Decision {
	var held struct {
		Attachments []jsontext.Value `json:"attachments"`
	}
	if output.Kind() != '{' || json.Unmarshal(output, &held) != nil {
		return ""
	}
	for _, a := range held.Attachments {
		if d := r.attachmentDecision(a); d != "" {
			return d
		}
	}
	return ""
}

// attachmentDecision returns the decision in an attachment of type python_object. It ignores an
// object that was given for review.
func (r Review) attachmentDecision(thing jsontext.Value) Decision {
	var held struct {
		Type   string         `json:"type"`
		Object jsontext.Value `json:"object"`
	}
	if thing.Kind() != '{' || json.Unmarshal(thing, &held) != nil || held.Type != "python_object" || r.wasGiven(held.Object) {
		return ""
	}
	return decision(held.Object)
}

// decision decodes review.feedback.v1, an object with a decision.
func decision(object jsontext.Value) Decision {
	var said struct {
		Decision jsontext.Value `json:"decision"`
	}
	word := ""
	if object.Kind() != '{' || json.Unmarshal(object, &said) != nil || json.Unmarshal(said.Decision, &word) != nil {
		return ""
	}
	switch d := Decision(word); d {
	case Approves, SendsBack, Rejects:
		return d
	}
	return ""
}

// wasGiven reports whether an object is part of the content given for review, in any
// formatting and order of members. Its decision isn't the overseer's (CAP-24).
func (r Review) wasGiven(object jsontext.Value) bool {
	if object = canonical(object); object == nil {
		return false
	}
	return slices.ContainsFunc(r.Seen, func(seen jsontext.Value) bool { return containsObject(canonical(seen), object) })
}

// containsObject reports whether a value equals or contains an object. Both are canonical.
func containsObject(value, object jsontext.Value) bool {
	switch value.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if bytes.Equal(value, object) {
			return true
		}
		inside := func(v jsontext.Value) bool { return containsObject(v, object) }
		return json.Unmarshal(value, &members) == nil && slices.ContainsFunc(slices.Collect(maps.Values(members)), inside)
	case '[':
		var items []jsontext.Value
		return json.Unmarshal(value, &items) == nil && slices.ContainsFunc(items, func(v jsontext.Value) bool { return containsObject(v, object) })
	}
	return false
}

// canonical returns a copy of a value in the form of RFC 8785; nil for invalid JSON.
func canonical(value jsontext.Value) jsontext.Value {
	value = value.Clone()
	if value.Canonicalize() != nil {
		return nil
	}
	return value
}
