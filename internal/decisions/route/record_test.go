package route_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/route"
)

// CLUTCH-36: a recorded decision has the members of the seed's event, and the same inputs
// decide the same again.
func TestARecordDecidesTheSameAgain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := route.Need{Requires: pick(r, "skill:a"), Prefers: pick(r, "tool:x", "domain:y"), Network: envelope.NetworkAllowed}
		if r.IntN(3) == 0 {
			n.Among = pick(r, "a", "b")
		}
		made := route.Recorded(n, []route.Candidate{randomCandidate(r, "b"), randomCandidate(r, "a")}, now, "digest")
		text, err := made.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{`"candidates":`, `"reason":`, `"scores":`, `"excluded":`, `"inputs":`, `"rules_digest":"digest"`, `"algorithm":`} {
			if !strings.Contains(string(text), name) {
				t.Errorf("the record has no %s: %s", name, text)
			}
		}
		read, err := route.ReadRecord(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := read.Again(); err != nil || again.Selected != made.Selected {
			t.Fatalf("Again = %+v, %v; want %q", again, err, made.Selected)
		}
	}
}

// A record that was changed, or that another algorithm made, is not confirmed.
func TestAChangedRecordIsNoticed(t *testing.T) {
	made := route.Recorded(route.Need{}, []route.Candidate{researcher("a"), researcher("b")}, now, "")
	for _, change := range []func(*route.Record){
		func(r *route.Record) { r.Selected = "b" },
		func(r *route.Record) { r.Scores = map[string]float64{"a": 1} },
		func(r *route.Record) { r.Inputs = map[string]route.Candidate{"a": r.Inputs["a"]} },
		func(r *route.Record) { r.Algorithm = "other/1" },
	} {
		changed := made
		change(&changed)
		if _, err := changed.Again(); err == nil {
			t.Errorf("Again(%+v) = nil; want an error", changed.Decision)
		}
	}
	if _, err := route.ReadRecord([]byte(`{"selected":"a"}`)); err == nil {
		t.Error("ReadRecord of an event without an algorithm = nil; want an error")
	}
}
