package talk

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Decision is what an overseer says of an answer (CAP-24). The zero value is
// that it has said nothing yet.
type Decision string

// The decisions.
const (
	Approves  Decision = "approved"
	SendsBack Decision = "needs_revision" // the agent has to say or do more
	Rejects   Decision = "rejected"
	Unable    Decision = "unable" // it is over, and nobody will decide
)

// A Review is what the run of an overseer came to.
type Review struct {
	Said    []envelope.Message // what it said beside its answer
	Answer  envelope.Result    // its answer, unless it GoesOn
	GoesOn  bool               // it has not answered: it waits for somebody
	Broken  bool               // its run came to a bad end
	Dialect envelope.Dialect   // in which it speaks
	Worker  string             // whose answer it looks at
	Asked   string             // and who asked for that
	Tasks   []envelope.ID      // the overseer's own, and the one of the answer
}

// Decide says what an overseer has decided, and in which words. A question to
// the one whose answer it is beats an approval; without a clear word there is
// none. What an AINL agent decides stands in its output.
func (r Review) Decide() (d Decision, words string) {
	approved := ""
	for _, m := range r.Said {
		switch said := r.hear(m); said {
		case SendsBack, Rejects:
			return said, m.Text
		case Approves:
			d, approved = said, m.Text
		}
	}
	switch {
	case r.GoesOn:
		return d, approved
	case r.Broken:
		return Unable, r.Answer.Error.Message
	case r.Answer.Status == envelope.Failed:
		return Rejects, r.Answer.Error.Message
	case d == Approves:
		return d, approved
	}
	if d := cmp.Or(decision(r.Answer.Output.Extra), enclosed(r.Answer.Output.Extra)); d != "" {
		return d, r.Answer.Output.Summary
	}
	if d := decision(r.Answer.Extra); d != "" {
		return d, r.Answer.Output.Summary
	}
	if r.Dialect == envelope.CAP && r.Answer.Output.Summary != "" {
		return SendsBack, r.Answer.Output.Summary // a message to the worker is a question to it
	}
	return Unable, "it answered without a decision"
}

// hear says what a single message of an overseer decides.
func (r Review) hear(m envelope.Message) Decision {
	if m.Task != "" && !slices.Contains(r.Tasks, m.Task) {
		return "" // that is about something else
	}
	switch m.Act { // these may quote what they are about, whatever that says
	case envelope.Inquires:
		return SendsBack
	case envelope.Fails:
		return Rejects
	}
	if d := feedback(m); d != "" {
		return d
	}
	switch {
	case m.Act == envelope.Informs && m.Dialect == envelope.CLowl && m.Type == "approve":
		return Approves
	case m.Act != envelope.Informs && m.Act != envelope.Completes && m.Act != envelope.Asks:
		return ""
	case slices.Contains(m.To, r.Worker):
		return SendsBack
	case slices.Contains(m.To, r.Asked) && m.Dialect != envelope.CLowl && !r.open(): // CLowl has a word for it
		return Approves
	}
	return ""
}

// open reports whether it asks others before it decides, or hands something on to
// them. Then what it tells whoever asked is not that it approves.
func (r Review) open() bool {
	return slices.ContainsFunc(r.Said, func(m envelope.Message) bool {
		return m.WantsReply || m.Act == envelope.Asks || m.Act == envelope.Delegates && m.Tie != envelope.Fork
	})
}

// feedback is the decision that a message states for machines.
func feedback(m envelope.Message) Decision {
	if d := decision(m.Data); d != "" {
		return d
	}
	for _, a := range m.Attachments {
		if d := attached(a.Raw); d != "" {
			return d
		}
	}
	return ""
}

// enclosed is the decision that an answer said in CAP states for machines: its
// attachments have become a member of its output.
func enclosed(output jsontext.Value) Decision {
	var held struct {
		Attachments []jsontext.Value `json:"attachments"`
	}
	if output.Kind() != '{' || json.Unmarshal(output, &held) != nil {
		return ""
	}
	for _, a := range held.Attachments {
		if d := attached(a); d != "" {
			return d
		}
	}
	return ""
}

// attached reads the decision of an attachment, which only a python_object has.
func attached(thing jsontext.Value) Decision {
	var held struct {
		Type   string         `json:"type"`
		Object jsontext.Value `json:"object"`
	}
	if thing.Kind() != '{' || json.Unmarshal(thing, &held) != nil || held.Type != "python_object" {
		return ""
	}
	return decision(held.Object)
}

// decision reads review.feedback.v1: an object with a decision.
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
