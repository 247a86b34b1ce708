package task

import (
	"fmt"
	"slices"
)

// A SelfRule says whether a person may decide about a task that the person requested. The
// zero value refuses.
type SelfRule int

// The rules.
const (
	SelfRefuse  SelfRule = iota // another approver must decide
	SelfConfirm                 // with the proof ProofTerminal or a higher one
	SelfAllow                   // as for a task of another requester
)

var selfWords = []string{"refuse", "confirm", "allow"}

// String returns the word for the rule, as the configuration has it.
func (r SelfRule) String() string {
	if r < 0 || int(r) >= len(selfWords) {
		return fmt.Sprintf("rule %d", int(r))
	}
	return selfWords[r]
}

// ParseSelfRule returns the rule of a word; an unknown one is an error, and refuses.
func ParseSelfRule(word string) (SelfRule, error) {
	if at := slices.Index(selfWords, word); at >= 0 {
		return SelfRule(at), nil
	}
	return SelfRefuse, fmt.Errorf("%q is not one of refuse, confirm, allow", word)
}

// Needs returns the least proof of a decision about a task that the person requested.
func (r SelfRule) Needs() ProofLevel {
	if r == SelfConfirm {
		return ProofTerminal
	}
	return ProofNone
}
