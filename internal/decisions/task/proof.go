package task

import (
	"fmt"
	"slices"
	"time"
)

// A Proof is the evidence that an approver made a decision. The zero value is none.
type Proof struct {
	Kind      string    `json:"kind"`                // "terminal", "ssh" or "passkey"; "": no proof
	Terminal  string    `json:"terminal,omitempty"`  // the device where the number was typed
	Key       string    `json:"key,omitempty"`       // SHA-256 fingerprint of the key that signed, or of the id of its passkey
	Expires   time.Time `json:"expires,omitzero"`    // of the signature
	Signature string    `json:"signature,omitempty"` // armoured, as ssh-keygen -Y sign writes it, or the JSON of a WebAuthn assertion

	// Level and Unproven aren't stored. They are set when an approval is read for a decision,
	// because its proof is verified then.
	Level    ProofLevel `json:"-"` // what the proof shows
	Unproven string     `json:"-"` // why the decision doesn't count; "" if it counts
}

// A ProofLevel says how an approval is proven. Levels are ordered: a higher level stops all
// attacks that a lower one stops. The zero value proves nothing.
type ProofLevel int

// The levels.
const (
	ProofNone     ProofLevel = iota // the daemon knows the user of the connection, and that it is not from a run
	ProofTerminal                   // a number that the daemon showed was typed back at a terminal that belongs to no run
	ProofKey                        // an SSH key of the approver signed the decision
	ProofPerson                     // a hardware key signed the decision after a touch, or a passkey after it verified its person
)

var proofWords = []string{"none", "terminal", "ssh", "person"}

// String returns the word for the level, as the configuration has it.
func (l ProofLevel) String() string {
	if l < 0 || int(l) >= len(proofWords) {
		return fmt.Sprintf("level %d", int(l))
	}
	return proofWords[l]
}

// ParseProofLevel returns the level of a word; "" is ProofNone.
func ParseProofLevel(word string) (ProofLevel, error) {
	if word == "" {
		return ProofNone, nil
	}
	if at := slices.Index(proofWords, word); at >= 0 {
		return ProofLevel(at), nil
	}
	return ProofNone, fmt.Errorf("%q is not none, terminal, ssh or person", word)
}
