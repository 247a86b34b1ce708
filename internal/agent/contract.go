package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/schema"
)

// keepContract holds an answer against required_output_contract: the fields it
// must include, and the schema it names (AINL-41 to AINL-43). An answer that
// admits failure is not asked for what it says is missing. A schema that we do
// not have cannot be held to; output.enforcement says so.
func (g *Agent) keepContract(j Job, words jsontext.Value, r *envelope.Result) {
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
	if err := g.opts.Schemas.Check(c.SchemaRef, g.subject(c.SchemaRef, words, result)); err != nil {
		object(fmt.Sprintf("the answer is not what %s describes: %v", c.SchemaRef, err))
	}
}

// subject returns what a schema is about. One from the directory describes the
// agent's output in its own words, before anything is filled in: the output
// of its envelope, or all it said when that has none. The built-in one
// describes what every result has, wherever it stands (F5).
func (g *Agent) subject(ref string, words, result jsontext.Value) jsontext.Value {
	output := member(result, "output")
	if ref == schema.AgentOutput {
		return slices.Concat(
			[]byte(`{"status":`), member(result, "status"), []byte(`,"summary":`), member(output, "summary"),
			[]byte(`,"actions":`), member(output, "actions"), []byte(`}`),
		)
	}
	if words == nil {
		return output
	}
	if own := member(words, "output"); own != nil && g.binding.Output == Envelope {
		return own
	}
	return words
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
func member(object jsontext.Value, name string) jsontext.Value {
	var members map[string]jsontext.Value
	if object.Kind() != '{' || json.Unmarshal(object, &members, lenient) != nil {
		return nil
	}
	return members[name]
}
