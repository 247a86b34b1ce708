package envelope

import "slices"

// A Sensitivity ranks how far a task's content may travel: a higher value
// travels less. The zero value is Public.
type Sensitivity int

// The ladder of AINL-44.
const (
	Public Sensitivity = iota
	Internal
	Confidential
	Restricted
)

var ladder = []string{Public: "public", Internal: "internal", Confidential: "confidential", Restricted: "restricted"}

// ParseSensitivity reads a word of the ladder. Of any other it says so, and
// returns Restricted.
func ParseSensitivity(word string) (rung Sensitivity, ok bool) {
	if at := slices.Index(ladder, word); at >= 0 {
		return Sensitivity(at), true
	}
	return Restricted, false
}

// String returns the word of the contract.
func (s Sensitivity) String() string { return ladder[min(max(s, Public), Restricted)] }
