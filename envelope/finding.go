package envelope

import (
	"fmt"
	"slices"
	"strings"
)

// A Finding is an error or a warning about an envelope, in words for its sender.
type Finding struct {
	Kind    Kind   // the kind of error; empty for a warning
	Field   string // such as "input.refs[0].uri"; empty for the whole line
	Message string // such as "must be a string"

	// Upstream marks a warning about an envelope that AINL's own validator refuses.
	Upstream bool
}

// Warning reports whether the finding does not refuse the envelope.
func (f Finding) Warning() bool { return f.Kind == "" }

// String returns "field: message".
func (f Finding) String() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// Findings are the findings about one envelope, in field order.
type Findings []Finding

// Refused reports whether a finding refuses the envelope, which then must not be used.
func (fs Findings) Refused() bool { return fs.Kind() != "" }

// Kind returns the kind of the first refusal; "" if there is none.
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

// Warnings returns the findings that are warnings.
func (fs Findings) Warnings() Findings { return fs.only(true) }

// Distinct returns the findings without duplicates.
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

// mostWords is how many findings Words prints: a line may be wrong in a hundred thousand ways,
// and its sender needs only the first.
const mostWords = 20

// Words returns the text of each finding; of many, the first ones and the number of the others.
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
