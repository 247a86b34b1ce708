package schedule

import (
	"slices"
	"testing"

	"mailboxd/envelope"
)

func TestTasksThatWaitForEachOtherAreRefused(t *testing.T) {
	a := NewAfter()
	if !a.Add("b", "a") || !a.Add("c", "b") || !a.Add("c", "b") {
		t.Fatal("a chain is refused")
	}
	for _, other := range []envelope.ID{"a", "b", "c"} {
		if a.Add("a", other) {
			t.Errorf("a waits for %s, which waits for a", other)
		}
	}
	if !a.Add("c", "d") { // a later revision of c waits for another one
		t.Error("c may not wait for d")
	}
	if got := a.Take("b"); got != nil {
		t.Errorf("%q wait for b; want nobody", got)
	}
	a.Add("e", "a")
	if got, want := a.Take("a"), []envelope.ID{"b", "e"}; !slices.Equal(got, want) {
		t.Errorf("%q wait for a; want %q", got, want)
	}
	if a.Has("b") || !a.Has("c") {
		t.Error("b still waits, or c doesn't")
	}
	if a.Remove("c"); len(a.waits) != 0 || len(a.tasks) != 0 {
		t.Errorf("%v and %v are left", a.waits, a.tasks)
	}
}

func TestAChainNamesEachTaskThatWaits(t *testing.T) {
	a := NewAfter()
	a.Add("b", "a")
	a.Add("c", "b")
	if got, want := a.Chain("c"), []envelope.ID{"c", "b"}; !slices.Equal(got, want) {
		t.Errorf("Chain(c) = %q; want %q", got, want)
	}
	if got := a.Chain("a"); len(got) > 0 {
		t.Errorf("Chain(a) = %q; want none, for a waits for no task", got)
	}
}

func TestATaskStillWaitsWhenAnotherOneNoLongerDoes(t *testing.T) {
	a := NewAfter()
	a.Add("b", "a")
	a.Add("e", "a")
	a.Remove("b")
	if got, want := a.Take("a"), []envelope.ID{"e"}; !slices.Equal(got, want) {
		t.Errorf("%q wait for a; want %q", got, want)
	}
}
