package route

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Record is a decision with everything that it was made of, as an event keeps it
// (CLUTCH-36). It can be decided again.
type Record struct {
	Decision
	Need      Need                 `json:"need"`
	Inputs    map[string]Candidate `json:"inputs"` // by the id of the agent
	At        time.Time            `json:"at"`
	Rules     string               `json:"rules_digest,omitzero"` // of the configuration
	Algorithm string               `json:"algorithm"`
}

// Recorded decides, and returns the decision with its inputs. Rules is the digest of the
// configuration.
func Recorded(n Need, all []Candidate, now time.Time, rules string) Record {
	now = now.UTC()
	r := Record{Decision: Decide(n, all, now), Need: n, Inputs: map[string]Candidate{}, At: now, Rules: rules, Algorithm: Algorithm}
	for _, c := range all {
		r.Inputs[c.ID] = c
	}
	return r
}

// JSON returns the record as the data of an event.
func (r Record) JSON() (jsontext.Value, error) {
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the decision for %q: %w", r.Selected, err)
	}
	return text, nil
}

// ReadRecord reads the data of an event.
func ReadRecord(data []byte) (r Record, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("read the decision: %w", err)
	}
	if r.Algorithm == "" {
		return Record{}, fmt.Errorf("read the decision: it names no algorithm")
	}
	return r, nil
}

// Again decides again from the recorded inputs. It returns an error if the record was made by
// another algorithm, or by the same one with another outcome.
func (r Record) Again() (Decision, error) {
	if r.Algorithm != Algorithm {
		return Decision{}, fmt.Errorf("the decision was made by the algorithm %q; this version has %q", r.Algorithm, Algorithm)
	}
	again := Decide(r.Need, slices.Collect(maps.Values(r.Inputs)), r.At)
	if !again.equal(r.Decision) {
		return again, fmt.Errorf("the recorded inputs select %q (%s), and the record says %q (%s)", again.Selected, again.Reason, r.Selected, r.Reason)
	}
	return again, nil
}

// equal compares what two decisions say. Times are equal as instants.
func (d Decision) equal(other Decision) bool {
	same := d.Until.Equal(other.Until)
	d.Until, other.Until = time.Time{}, time.Time{}
	return same && reflect.DeepEqual(d, other)
}
