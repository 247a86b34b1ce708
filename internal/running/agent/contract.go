package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schema"
)

// checkContract checks an answer against required_output_contract: the required fields and
// the schema (AINL-41 to AINL-43). A reported failure needs no missing fields. An unknown
// schema isn't checked, and output.enforcement says so.
func (g *Agent) checkContract(j task.Job, words jsontext.Value, r *envelope.Result) {
	c := j.Task.Contract
	finished := r.Status == envelope.OK || r.Status == envelope.Partial
	if c == nil || !finished || g.mode(envelope.ControlOutputContract) == envelope.Off {
		return
	}
	object := func(message string) {
		g.object(r, envelope.ControlOutputContract, envelope.ContractViolation, message)
	}
	result := jsontext.Value(r.Encode()) // without enforcement, which mailboxd adds
	if missing := missing(result, c.MustInclude); len(missing) > 0 {
		object(fmt.Sprintf("the answer lacks required fields: %q", missing))
		return
	}
	if !g.opts.Schemas.Has(c.SchemaRef) {
		return
	}
	about := g.ownOutput(words, r)
	if c.SchemaRef == schema.AgentOutput {
		about = builtInForm(result)
	}
	if err := g.opts.Schemas.Check(c.SchemaRef, about); err != nil {
		object(fmt.Sprintf("the answer is not what %s describes: %v", c.SchemaRef, err))
	}
}

// builtInForm returns the form of a result that the built-in schema checks: fields of every
// result, at either place (F5).
func builtInForm(result jsontext.Value) jsontext.Value {
	output := member(result, "output")
	return slices.Concat(
		[]byte(`{"status":`), member(result, "status"), []byte(`,"summary":`), member(output, "summary"),
		[]byte(`,"actions":`), member(output, "actions"), []byte(`}`),
	)
}

// ownOutput returns the form of a result that a configured schema checks: the output as the
// agent wrote it, without mailboxd's fields and without the envelope.
func (g *Agent) ownOutput(words jsontext.Value, r *envelope.Result) jsontext.Value {
	if words == nil { // a text is a summary
		text, _ := json.Marshal(map[string]string{"summary": r.Output.Summary}, lenient)
		return text
	}
	if output := member(words, "output"); output != nil && g.binding.Output == Envelope {
		return output
	}
	own := map[string]jsontext.Value{}
	for _, extra := range []jsontext.Value{r.Extra, r.Output.Extra} { // only one of the two has members
		maps.Copy(own, members(extra))
	}
	for _, name := range []string{"summary", "actions"} {
		if value := member(words, name); value != nil {
			own[name] = value
		}
	}
	// Decoded values can always be encoded; json sorts their names.
	text, _ := json.Marshal(own, lenient, json.Deterministic(true))
	return text
}

// missing returns the names that are neither beside nor in the output of a result (AINL-43,
// F5).
func missing(result jsontext.Value, names []string) []string {
	output := member(result, "output")
	var missing []string
	for _, name := range names {
		if !hasMember(result, name) && !hasMember(output, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// hasMember reports whether an object has a non-null member with a name or at a dotted
// path.
func hasMember(object jsontext.Value, name string) bool {
	if v := member(object, name); v != nil {
		return v.Kind() != 'n'
	}
	first, rest, dotted := strings.Cut(name, ".")
	return dotted && hasMember(member(object, first), rest)
}

// member returns a member of an object; nil for none.
func member(object jsontext.Value, name string) jsontext.Value { return members(object)[name] }

// members returns the members of an object; none for another value.
func members(object jsontext.Value) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if object.Kind() != '{' || json.Unmarshal(object, &m, lenient) != nil {
		return nil
	}
	return m
}
