package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/schema"
	"mailboxd/internal/task"
)

// keepContract holds an answer against required_output_contract: the fields it
// must include, and the schema it names (AINL-41 to AINL-43). An answer that
// admits failure is not asked for what it says is missing. A schema that we do
// not have cannot be held to; output.enforcement says so.
func (g *Agent) keepContract(j task.Job, words jsontext.Value, r *envelope.Result) {
	c := j.Task.Contract
	finished := r.Status == envelope.OK || r.Status == envelope.Partial
	if c == nil || !finished || g.mode(envelope.ControlOutputContract) == envelope.Off {
		return
	}
	object := func(message string) {
		g.object(r, envelope.ControlOutputContract, envelope.ContractViolation, message)
	}
	result := jsontext.Value(r.Encode()) // as it is without our word on it
	if missing := lacking(result, c.MustInclude); len(missing) > 0 {
		object(fmt.Sprintf("the answer lacks required fields: %q", missing))
		return
	}
	if !g.opts.Schemas.Has(c.SchemaRef) {
		return
	}
	about := g.ownOutput(words, r)
	if c.SchemaRef == schema.AgentOutput {
		about = summed(result)
	}
	if err := g.opts.Schemas.Check(c.SchemaRef, about); err != nil {
		object(fmt.Sprintf("the answer is not what %s describes: %v", c.SchemaRef, err))
	}
}

// summed is what the built-in schema is about: what every result has, wherever
// an agent said it (F5).
func summed(result jsontext.Value) jsontext.Value {
	output := member(result, "output")
	return slices.Concat(
		[]byte(`{"status":`), member(result, "status"), []byte(`,"summary":`), member(output, "summary"),
		[]byte(`,"actions":`), member(output, "actions"), []byte(`}`),
	)
}

// ownOutput is what a schema of the directory is about: the output in the
// agent's own words, without what we filled in and without its envelope.
func (g *Agent) ownOutput(words jsontext.Value, r *envelope.Result) jsontext.Value {
	if words == nil { // a text is a summary
		text, _ := json.Marshal(map[string]string{"summary": r.Output.Summary}, lenient)
		return text
	}
	if output := member(words, "output"); output != nil && g.binding.Output == Envelope {
		return output
	}
	own := map[string]jsontext.Value{}
	for _, extra := range []jsontext.Value{r.Extra, r.Output.Extra} { // of the two, one has the members
		maps.Copy(own, members(extra))
	}
	for _, name := range []string{"summary", "actions"} {
		if said := member(words, name); said != nil {
			own[name] = said
		}
	}
	// Values that were read before can only be written; json sorts their names.
	text, _ := json.Marshal(own, lenient, json.Deterministic(true))
	return text
}

// lacking returns the names that a result has neither beside its output nor in
// it (AINL-43, F5).
func lacking(result jsontext.Value, names []string) []string {
	output := member(result, "output")
	var missing []string
	for _, name := range names {
		if !present(result, name) && !present(output, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// present reports whether an object has a member of that name, or one on that
// dotted path, which is not null.
func present(object jsontext.Value, name string) bool {
	if v := member(object, name); v != nil {
		return v.Kind() != 'n'
	}
	first, rest, dotted := strings.Cut(name, ".")
	return dotted && present(member(object, first), rest)
}

// member returns a member of an object, nil when there is none.
func member(object jsontext.Value, name string) jsontext.Value { return members(object)[name] }

// members returns the members of an object, none when it is not one.
func members(object jsontext.Value) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if object.Kind() != '{' || json.Unmarshal(object, &m, lenient) != nil {
		return nil
	}
	return m
}
