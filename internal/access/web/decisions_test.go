package web

import (
	"slices"
	"testing"
	"time"
)

// waiting is a decision that waits for a passkey.
func waiting(verb string) job {
	one := newDecision(verb, "deploy", "")
	one.Passkey = "{}"
	return job{decision: one}
}

func TestADecisionThatWaitsForAPasskeyEndsInTime(t *testing.T) {
	var d decisions
	one := waiting("approve")
	one.Until = time.Now().Add(-time.Hour)
	if err := d.add(one); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.take(one.ID); ok {
		t.Error("a passkey can still sign a decision whose minute ended an hour ago")
	}
	if shown, _ := d.find(one.ID); !shown.Done || shown.Why == "" {
		t.Errorf("the page shows %+v; want that it is over, and why", shown)
	}
}

func TestANewDecisionEndsTheOneThatWaitsForAPasskey(t *testing.T) {
	d := decisions{begun: make(chan job, 1)}
	first, second, byNumber := waiting("approve"), waiting("deny"), job{decision: newDecision("approve", "other", "")}
	var shown []string
	first.show, second.show = func() { shown = append(shown, "first") }, func() { shown = append(shown, "second") }
	for _, next := range []job{first, second} {
		if err := d.add(next); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(shown, []string{"first", "second"}) {
		t.Errorf("the terminal showed %v; want each decision as it began", shown)
	}
	if _, ok := d.take(first.ID); ok {
		t.Error("a passkey can sign a decision that the terminal doesn't show last")
	}
	if err := d.add(byNumber); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.take(second.ID); ok {
		t.Error("a passkey can sign a decision while the terminal asks about another one")
	}
}

func TestADecisionThatIsBeingMadeLetsNoOtherBegin(t *testing.T) {
	d := decisions{begun: make(chan job, 1)}
	signed, byNumber := waiting("approve"), job{decision: newDecision("approve", "other", "")}
	if err := d.add(signed); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.take(signed.ID); !ok {
		t.Fatal("the passkey can't sign the decision")
	}
	if err := d.add(waiting("deny")); err == nil {
		t.Error("another decision began while the signature is with the daemon")
	}
	d.end(signed.decision, nil)
	if err := d.add(byNumber); err != nil {
		t.Fatal(err)
	}
	if err := d.add(waiting("deny")); err == nil {
		t.Error("a decision began while the terminal asks for the number of another one")
	}
}
