package owner

import "testing"

func TestTheNextStepOfAFailureIsSaidOnce(t *testing.T) {
	for away, want := range map[string][2]string{
		"refused; make a key":    {"the hub is not connected: refused", "make a key"},
		"the connection is lost": {"the hub is not connected: the connection is lost", "start the hub: mailboxd-hub serve"},
	} {
		if reason, next := explainAway(away); reason != want[0] || next != want[1] {
			t.Errorf("%q: reason %q, next %q; want %q", away, reason, next, want)
		}
	}
}
