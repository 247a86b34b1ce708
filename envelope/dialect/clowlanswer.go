package dialect

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// answerFields are the members of an AgentTaskResult that d.ainl carries beside an answer:
// CLowl has no words for them.
var answerFields = []string{"confidence", "artifact_refs", "cost_used", "time_used", "needs_review", "provenance_ref"}

// answer reads the d of a DONE as an answer (CLOWL-25): its summary, actions, and further
// fields. Its status is ok, or partial if d.status says so.
func (r *clowlReading) answer() envelope.Result {
	ainl := membersOf(r.d.member("ainl"))
	status, output := envelope.OK, map[string]jsontext.Value{}
	for name, value := range r.d.members {
		word, _ := textOf(value)
		switch {
		case name == "ainl" && ainl != nil:
		case name == "status" && word == string(envelope.OK):
		case name == "status" && word == string(envelope.Partial):
			status = envelope.Partial
		case name == "confidence" && ainl["confidence"] == nil && value.Kind() == '0':
			ainl = maps.Clone(ainl)
			if ainl == nil {
				ainl = map[string]jsontext.Value{}
			}
			ainl["confidence"] = value
		default:
			output[name] = value
		}
	}
	var w writer
	w.word("schema_version", envelope.SchemaVersion)
	w.word("status", string(status))
	w.add("output", object(output))
	for _, name := range answerFields {
		w.add(name, ainl[name])
	}
	w.add(keptCtx, contextValue(r.message.Context))
	if r.message.Deterministic {
		w.add(keptDet, boolean(true))
	}
	a, findings := envelope.DecodeAnswer(w.end())
	if findings.Refused() { // the members have another meaning here
		a = envelope.Result{Status: status}
		a.Output.Extra = object(map[string]jsontext.Value{"result": r.message.Data})
		return a
	}
	for _, f := range findings {
		if field, ok := strings.CutPrefix(f.Field, "output."); ok {
			f.Field = "body.d." + field
		} else {
			f.Field = "body.d.ainl." + f.Field
		}
		r.findings = append(r.findings, f)
	}
	return a
}

// The members of a result that keep the parts of an answer that only CLowl has: whether it is
// deterministic, and its context.
const (
	keptDet = "mbx.det"
	keptCtx = "mbx.ctx"
)

// Beside returns the parts of an answer that only CLowl has: whether it is deterministic, and
// its context.
func Beside(a envelope.Result) (deterministic bool, context envelope.Context) {
	kept := membersOf(a.Extra)
	ctx := membersOf(kept[keptCtx])
	context.Ref, _ = textOf(ctx["ref"])
	context.Inline, _ = textOf(ctx["inline"])
	context.Hash, _ = textOf(ctx["hash"])
	return kept[keptDet].Kind() == 't', context
}

// answerData returns an answer as the d of a DONE.
func answerData(a envelope.Result) map[string]jsontext.Value {
	d, ainl := membersOf(a.Output.Extra), map[string]jsontext.Value{}
	if d == nil {
		d = map[string]jsontext.Value{}
	}
	result := membersOf(a.EncodeLine())
	output := membersOf(result["output"])
	for _, name := range []string{"summary", "actions"} {
		if value := output[name]; string(value) != `""` && string(value) != "[]" {
			d[name] = value
		}
	}
	if status := a.Status; status != "" && status != envelope.OK || d["status"] == nil {
		d["status"] = result["status"]
	}
	for _, name := range answerFields {
		if !slices.Contains(idle[name], string(line(result[name]))) {
			ainl[name] = result[name]
		}
	}
	if a.Time == (envelope.TimeUsed{}) {
		delete(ainl, "time_used")
	}
	if len(ainl) > 0 {
		d["ainl"] = object(ainl)
	}
	return d
}

// idle are values of result members that carry no information.
var idle = map[string][]string{
	"confidence":     {"null"},
	"artifact_refs":  {"[]"},
	"cost_used":      {`{"tokens":0,"usd_cents":0}`},
	"needs_review":   {`{"required":false,"reason":null}`},
	"provenance_ref": {`{"ainl_graph_checksum":"","ainl_program_id":"","runtime_version":"","recording_uri":""}`},
}
