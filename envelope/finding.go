package envelope

import (
	"fmt"
	"slices"
	"strings"
)

// A Finding is one thing to say about an envelope, in words for its sender.
type Finding struct {
	Kind    Kind   // what a refusal is called; empty for a warning
	Field   string // "input.refs[0].uri"; empty when it is the whole line
	Message string // "must be a string"

	// Upstream, of a warning, says that AINL's own validator refuses the envelope
	// for it.
	Upstream bool
}

// Warning reports whether the envelope is taken in spite of the finding.
func (f Finding) Warning() bool { return f.Kind == "" }

// String returns "field: message".
func (f Finding) String() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// Findings is everything there is to say about one envelope, in field order.
type Findings []Finding

// Refused reports whether the envelope must not be used.
func (fs Findings) Refused() bool { return fs.Kind() != "" }

// Kind returns the kind of the first refusal, or "" when there is none.
func (fs Findings) Kind() Kind {
	for _, f := range fs {
		if !f.Warning() {
			return f.Kind
		}
	}
	return ""
}

// Refusals returns the findings that are not warnings.
func (fs Findings) Refusals() Findings { return fs.only(false) }

// Warnings returns the findings that do not refuse the envelope.
func (fs Findings) Warnings() Findings { return fs.only(true) }

// Distinct returns the findings without repetitions.
func (fs Findings) Distinct() (each Findings) {
	for _, f := range fs {
		if !slices.Contains(each, f) {
			each = append(each, f)
		}
	}
	return each
}

func (fs Findings) only(warning bool) Findings {
	var some Findings
	for _, f := range fs {
		if f.Warning() == warning {
			some = append(some, f)
		}
	}
	return some
}

// mostWords is how many findings are put into words: a line may be wrong in a
// hundred thousand ways, and anyone who wrote it needs but the first.
const mostWords = 20

// Words returns what each of the findings says, or each of the first and how
// many more there are.
func (fs Findings) Words() []string {
	words := make([]string, 0, min(len(fs), mostWords+1))
	for i, f := range fs {
		if i == mostWords {
			return append(words, fmt.Sprintf("and %d more", len(fs)-i))
		}
		words = append(words, f.String())
	}
	return words
}

// String joins the Words with "; ".
func (fs Findings) String() string { return strings.Join(fs.Words(), "; ") }
