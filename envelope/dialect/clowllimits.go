package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// carried are the members of an AgentTaskRequest, other than limits, that d.ainl may have.
var carried = []string{"target_role", "metadata", "refs"}

// limit reads the limits in d.ainl and d.deadline with AINL's own reader, so that the same
// rules bind in both dialects. An error there is one of the message's data (E008), unless it is
// an attack.
func (r *clowlReading) limit() {
	m := &r.message
	ainl := r.ainl()
	t, findings := envelope.DecodeTask(r.asAINL(ainl), envelope.Strict)
	for _, f := range findings {
		f.Field = clowlField(f.Field, ainl)
		if f.Kind == envelope.InvalidEnvelope {
			f.Kind = envelope.ValidationFailed
		}
		r.findings = append(r.findings, f)
	}
	t.NearMisses = nearMissesOf(r.d.member("ainl"), "body.d.ainl")
	for i := range t.NearMisses {
		t.NearMisses[i].Kind = envelope.ValidationFailed
	}
	t.Raw, t.Hash, t.ID, t.Agent, t.Role = m.Raw, m.Hash, m.Task, m.Request.Agent, ""
	if t.Description = m.Text; ainl["target_role"] != nil {
		t.Role, _ = textOf(ainl["target_role"])
	}
	m.Request = t
}

// ainl returns the known members of d.ainl.
func (r *clowlReading) ainl() map[string]jsontext.Value {
	value := r.d.member("ainl")
	if value == nil {
		return nil
	}
	if value.Kind() != '{' {
		r.d.note(envelope.ValidationFailed, "ainl", "must be an object")
		return nil
	}
	known := map[string]jsontext.Value{}
	for name, value := range membersOf(value) {
		switch {
		case name == "metadata" && value.Kind() == '{':
			known[name] = r.metadata(value)
		case slices.Contains(limitNames, name) || slices.Contains(carried, name):
			known[name] = value
		default:
			r.d.note("", "ainl."+name, "is not a field we know")
		}
	}
	return known
}

// nearMissesOf returns the near misses in ainl, which has members of an AgentTaskRequest.
func nearMissesOf(ainl jsontext.Value, path string) envelope.Findings {
	if ainl == nil {
		return nil
	}
	return envelope.NearMisses(ainl, path, envelope.InRequest)
}

// metadata returns the metadata without the keys that only an AINL line may have.
func (r *clowlReading) metadata(value jsontext.Value) jsontext.Value {
	return withoutSenderKeys(value, func(key, message string) { r.d.note("", "ainl."+key, message) })
}

// withoutSenderKeys removes the keys of metadata that only an AINL line may have, and notes
// each.
func withoutSenderKeys(metadata jsontext.Value, note func(key, message string)) jsontext.Value {
	all := membersOf(metadata)
	for _, key := range envelope.SenderKeys {
		if _, ok := all[key]; ok {
			delete(all, key)
			note(fmt.Sprintf("metadata[%q]", key), "is for AINL lines only: left out")
			metadata = object(all)
		}
	}
	return metadata
}

// asAINL writes the request as AINL would.
func (r *clowlReading) asAINL(ainl map[string]jsontext.Value) jsontext.Value {
	m := &r.message
	var w, input writer
	w.word("schema_version", envelope.SchemaVersion)
	w.word("task_id", string(m.Task))
	w.word("requester_id", m.From)
	w.word("target_agent", one(m.To))
	w.add("target_role", or(ainl["target_role"], quoted("executor")))
	w.word("task_type", m.Type)
	w.add("description", quoted(""))
	input.add("payload", m.Data)
	input.add("refs", contextRefs(m.Context, ainl["refs"]))
	w.add("input", input.end())
	w.add("deadline", or(ainl["deadline"], r.d.member("deadline")))
	for _, name := range append([]string{"metadata"}, limitNames...) {
		if name != "deadline" {
			w.add(name, ainl[name])
		}
	}
	return w.end()
}

func or(value, otherwise jsontext.Value) jsontext.Value {
	if value == nil {
		return otherwise
	}
	return value
}

// contextRefs returns the references of a request: its context, and further ones.
func contextRefs(c envelope.Context, more jsontext.Value) jsontext.Value {
	if c.Ref == "" {
		return more
	}
	var all []jsontext.Value
	if more != nil && !unmarshal(more, &all) {
		return more // AINL's reader refuses it
	}
	ref := refsValue([]envelope.Ref{contextRef(c)})
	first := ref[1 : len(ref)-1]
	same := func(other jsontext.Value) bool { return refURI(other) == contextURI(c.Ref) }
	if slices.ContainsFunc(all, same) {
		return more
	}
	return array(append([]jsontext.Value{first}, all...))
}

// contextRef returns a context as a reference.
func contextRef(c envelope.Context) envelope.Ref {
	uri := contextURI(c.Ref)
	if strings.HasPrefix(uri, "file://") {
		return envelope.Ref{Kind: "file", URI: uri}
	}
	return envelope.Ref{Kind: "url", URI: uri}
}

func refURI(ref jsontext.Value) string {
	uri, _ := textOf(membersOf(ref)["uri"])
	return uri
}

// clowlField returns the name in the CLowl message of a field of AINL.
func clowlField(field string, ainl map[string]jsontext.Value) string {
	head, _, _ := strings.Cut(field, "[")
	head, _, _ = strings.Cut(head, ".")
	switch {
	case head == "task_id":
		return "mid"
	case head == "requester_id":
		return "from"
	case head == "target_agent":
		return "to"
	case head == "task_type":
		return "body.t"
	case strings.HasPrefix(field, "input.refs"):
		if ainl["refs"] == nil {
			return "ctx.ref"
		}
		return "body.d.ainl." + strings.TrimPrefix(field, "input.")
	case head == "deadline" && ainl["deadline"] == nil:
		return "body.d.deadline"
	}
	return "body.d.ainl." + field
}
