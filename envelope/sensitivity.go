package envelope

import "slices"

// A Sensitivity limits how far the content of a task may travel: a higher value is more
// restricted. The zero value is Public.
type Sensitivity int

// The levels of AINL-44.
const (
	Public Sensitivity = iota
	Internal
	Confidential
	Restricted
)

var ladder = []string{Public: "public", Internal: "internal", Confidential: "confidential", Restricted: "restricted"}

// ParseSensitivity reads a level. Any other word gives Restricted, and ok is false.
func ParseSensitivity(word string) (rung Sensitivity, ok bool) {
	if at := slices.Index(ladder, word); at >= 0 {
		return Sensitivity(at), true
	}
	return Restricted, false
}

// String returns the word of the contract.
func (s Sensitivity) String() string { return ladder[min(max(s, Public), Restricted)] }
