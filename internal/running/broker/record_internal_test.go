package broker

import (
	"testing"
)

// Version 2026-07-28 of the protocol requires one, and newer programs refuse a list without it.
func TestTheListOfToolsSaysWhoMayKeepIt(t *testing.T) {
	all, err := (&broker{}).list(t.Context())
	if err != nil || all.CacheScope != "private" {
		t.Errorf("the list is %+v, %v; want one for the program alone", all, err)
	}
}

func TestABrokerGoesOnWithTheRecordOfAnEarlierOne(t *testing.T) {
	const limit = 3
	dir := t.TempDir()
	for _, may := range []bool{true, true, true, false} {
		var r record
		if err := r.open(dir); err != nil {
			t.Fatal(err)
		}
		if r.count(limit) != may {
			t.Errorf("with %d calls before, another one may be made: %t; want %t", r.calls-1, !may, may)
		}
		for _, what := range []string{"ask", "sent", "called"} {
			if err := r.line(what, struct{}{}); err != nil {
				t.Error(err)
			}
		}
		r.close()
	}
}
