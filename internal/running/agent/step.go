package agent

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// checkStep checks an answer against the step of a workflow that its task names: the payload
// type, the required members and the schema (CLUTCH-42). A reported failure has no payload to
// check. The output is kept whatever is wrong.
func (g *Agent) checkStep(j task.Job, words jsontext.Value, r *envelope.Result) {
	step, ok := g.opts.Workflows.StepOf(j.Task)
	finished := r.Status == envelope.OK || r.Status == envelope.Partial
	if !ok || !finished || g.mode(envelope.ControlOutputContract) == envelope.Off {
		return
	}
	object := func(format string, args ...any) {
		g.object(r, envelope.ControlOutputContract, envelope.ContractViolation, fmt.Sprintf("step %q: ", step.ID)+fmt.Sprintf(format, args...))
	}
	if said := payloadType(words, r); step.PayloadType != "" && said != "" && said != step.PayloadType {
		object("the payload_type of the answer is %q, not %q", said, step.PayloadType)
		return
	}
	if missing := missing(r.Encode(), step.Required); len(missing) > 0 {
		object("the answer lacks required fields: %q", missing)
		return
	}
	ref := step.Ref()
	if !g.opts.Schemas.Has(ref) {
		return
	}
	if err := g.opts.Schemas.Check(ref, g.payload(words, r)); err != nil {
		object("the answer is not what %s describes: %v", ref, err)
	}
}

// payloadType returns what an answer calls its payload; "" if it says nothing of it, as answers
// in most dialects do.
func payloadType(words jsontext.Value, r *envelope.Result) string {
	for _, object := range []jsontext.Value{words, member(r.Extra, "mbx.clutch"), r.Extra, r.Output.Extra} {
		var name string
		if value := member(object, "payload_type"); value.Kind() == '"' && json.Unmarshal(value, &name) == nil {
			return name
		}
	}
	return ""
}

// payload returns the output as the agent wrote it. An answer in another dialect than AINL has
// its members in the output.
func (g *Agent) payload(words jsontext.Value, r *envelope.Result) jsontext.Value {
	if words == nil && r.Output.Extra != nil {
		return r.Output.Extra
	}
	return g.ownOutput(words, r)
}

// checkVersion checks that the schema which an answer in Clutch names for its payload has such a
// version, if it is a schema that is known (CLUTCH-14). Answers in other dialects name none.
func (g *Agent) checkVersion(r *envelope.Result) {
	var ref string
	named := member(member(r.Extra, "mbx.clutch"), "schema_ref")
	if named.Kind() != '"' || json.Unmarshal(named, &ref) != nil || g.mode(envelope.ControlOutputContract) == envelope.Off {
		return
	}
	if why := g.opts.Schemas.UnknownVersion(ref); why != "" {
		g.object(r, envelope.ControlOutputContract, envelope.ContractViolation, "schema_ref: "+why)
	}
}
