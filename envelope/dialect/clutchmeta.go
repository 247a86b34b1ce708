package dialect

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// clutchMeta returns meta: the message's own, or the parts that Clutch has no members for,
// under the name of their dialect (mapping 2.5).
func clutchMeta(m envelope.Message) jsontext.Value {
	all := map[string]jsontext.Value{}
	if m.Clutch != nil && m.Clutch.Meta != nil {
		all = membersOf(m.Clutch.Meta)
	}
	set := func(name string, value jsontext.Value) {
		if value != nil {
			all[name] = value
		}
	}
	if m.Cause != "" {
		set("causation_id", quoted(m.Cause))
	}
	if intent := intentOf(m); intent != "" {
		set("intent", quoted(intent))
	}
	if m.Asked.IsSigned() && (m.Act == envelope.Accepts || m.Act == envelope.Completes || m.Act == envelope.Fails) {
		set("signature", quoted(m.Asked.Auth.String()))
	}
	if m.Clutch == nil {
		set("ainl", ainlBeside(m))
		set("clowl", clowlBeside(m))
	}
	if len(all) == 0 {
		return nil
	}
	return object(all)
}

// intentOf returns the intent of a chat.message (CLUTCH-32).
func intentOf(m envelope.Message) string {
	switch {
	case m.Act == envelope.Asks || m.Act == envelope.ReportsStatus:
		return "status"
	case m.Act == envelope.Inquires, m.Act == envelope.Delegates && m.Tie == envelope.Oversee:
		return "oversight"
	case m.Act == envelope.Informs && m.WantsReply:
		return "question"
	}
	return ""
}

// ainlBeside returns the parts of a request or of an answer that only AINL has; nil for none.
func ainlBeside(m envelope.Message) jsontext.Value {
	all := map[string]jsontext.Value{}
	switch {
	case asks(m.Act):
		t := m.Request
		all = limitsOf(t)
		delete(all, "budget_limit")  // in payload.constraints
		delete(all, "allowed_tools") // in security.policy
		if t.Role != "" {
			all["target_role"] = quoted(t.Role)
		}
		if len(t.Metadata) > 0 {
			all["metadata"] = object(t.Metadata)
		}
		if len(t.Refs) > 0 {
			all["refs"] = refsValue(t.Refs)
		}
	case m.Act == envelope.Completes:
		result := membersOf(m.Answer.EncodeLine())
		for _, name := range answerFields {
			if !slices.Contains(idle[name], string(line(result[name]))) {
				all[name] = result[name]
			}
		}
		if m.Answer.Time == (envelope.TimeUsed{}) {
			delete(all, "time_used")
		}
	}
	if len(all) == 0 {
		return nil
	}
	return object(all)
}

// clowlBeside returns the parts of a message that only CLowl has; nil for none.
func clowlBeside(m envelope.Message) jsontext.Value {
	var w writer
	if m.Deterministic {
		w.add("det", boolean(true))
	}
	if m.Act == envelope.Delegates {
		w.word("delegation_mode", string(cmp.Or(m.Tie, envelope.Fork)))
	}
	w.word("hash", m.Context.Hash)
	if w.text == nil {
		return nil
	}
	return w.end()
}

// clowlMeta reads the parts of a message that only CLowl has.
func (r *clutchReading) clowlMeta() {
	m, said := &r.message, membersOf(membersOf(r.part.Meta)["clowl"])
	m.Deterministic = said["det"].Kind() == 't'
	if mode, _ := textOf(said["delegation_mode"]); m.Act == envelope.Delegates {
		switch tie := envelope.Tie(mode); tie {
		case envelope.Transfer, envelope.Fork, envelope.Assist:
			m.Tie = tie
		}
		if r.part.Intent == "oversight" {
			m.Tie = envelope.Oversee
		}
	}
}

// keptClutch is the member of a result that keeps the parts of an answer that only Clutch has:
// the type of its payload, and its attachments.
const keptClutch = "mbx.clutch"

// keptPart returns the value of keptClutch for an answer; nil for none. A failure has details.
func keptPart(c *envelope.ClutchPart, details map[string]jsontext.Value) jsontext.Value {
	var w writer
	w.word("domain", c.Domain)
	w.word("payload_type", c.PayloadType)
	w.word("schema_ref", c.SchemaRef)
	w.add("attachments", clutchThings(c.Attachments))
	if len(details) > 0 {
		w.add("details", object(details))
	}
	if w.text == nil {
		return nil
	}
	w.word("type", c.Type)
	return w.end()
}

// PartOf returns the ClutchPart of a message: its own, or that of the agent's answer. It is nil
// if there is none.
func PartOf(m envelope.Message) *envelope.ClutchPart {
	kept := membersOf(m.Answer.Extra)[keptClutch]
	if m.Clutch != nil || kept == nil {
		return m.Clutch
	}
	var findings envelope.Findings
	r := &clutchReading{part: new(envelope.ClutchPart)}
	if r.fields = newFields(kept, "", &findings); r.members == nil {
		return nil
	}
	r.material()
	r.part.Type, _ = textOf(r.members["type"])
	return r.part
}

// keptDetails returns the details of a failure that an agent reported in Clutch; nil for none.
func keptDetails(m envelope.Message) jsontext.Value {
	return membersOf(membersOf(m.Answer.Extra)[keptClutch])["details"]
}

// clutchMetadata adds the parts of a request that only Clutch has to the metadata of one in
// AINL.
func clutchMetadata(c *envelope.ClutchPart, all map[string]jsontext.Value) {
	for name, text := range map[string]string{
		"mbx.run_id": c.RunID, "mbx.domain": c.Domain, "mbx.schema_ref": c.SchemaRef, "mbx.workflow": c.Workflow, "mbx.step": c.Step,
		"mbx.trace_id": c.Trace.TraceID, "mbx.span_id": c.Trace.SpanID, envelope.ParentTask: string(c.Parent),
	} {
		if text != "" {
			all[name] = quoted(text)
		}
	}
	for name, value := range map[string]jsontext.Value{
		"mbx.requires": someNames(c.Requires), "mbx.prefers": someNames(c.Prefers), "mbx.attachments": clutchThings(c.Attachments),
	} {
		if value != nil {
			all[name] = value
		}
	}
	if c.Attempt > 1 {
		all["mbx.attempt"] = strconv.AppendInt(nil, int64(c.Attempt), 10)
	}
}
