package schema

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps is how much one check may do. A schema that branches and calls
// itself can take two to the power of the answer's depth; this is less than a
// second.
const maxSteps = 200_000

var errTooManySteps = errors.New("it takes too long to hold it against the schema")

// steps count what a check does. The library knows no way to stop one, so they
// take part in every schema as a keyword of it, and panic at their end.
type steps struct{ left int }

// vocabulary makes every object of every schema count.
func (s *steps) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL: "urn:mailboxd:steps",
		Compile: func(_ *jsonschema.CompilerContext, keywords map[string]any) (jsonschema.SchemaExt, error) {
			branches := 1
			for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
				if list, ok := keywords[keyword].([]any); ok {
					branches += len(list)
				}
			}
			return step{s, branches}, nil
		},
	}
}

// A step is one object of a schema meeting one value. What it has the library
// look at is counted with it, for a member that is wrong at once has no step
// of its own.
type step struct {
	*steps
	branches int
}

// Validate implements jsonschema.SchemaExt.
func (s step) Validate(_ *jsonschema.ValidatorContext, value any) {
	s.left -= s.branches
	switch value := value.(type) {
	case map[string]any:
		s.left -= len(value)
	case []any:
		s.left -= len(value)
	}
	if s.left < 0 {
		panic(errTooManySteps)
	}
}
