package sandbox_test

import (
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestASandboxContainsASensitivityIfItsHostsMaySeeIt(t *testing.T) {
	for _, test := range []struct {
		network, egress sandbox.Hosts
		want            bool
	}{
		{nil, nil, true},
		{nil, sandbox.Hosts{"a.example"}, true},
		{sandbox.Hosts{"a.example"}, nil, false},
		{sandbox.Hosts{"a.example"}, sandbox.Hosts{"A.Example."}, true},
		{sandbox.Hosts{"a.example:443"}, sandbox.Hosts{"a.example"}, true},
		{sandbox.Hosts{"a.example:8443"}, sandbox.Hosts{"a.example"}, false},
		{sandbox.Hosts{"a.example", "b.example"}, sandbox.Hosts{"a.example"}, false},
		{sandbox.Hosts{"x.a.example"}, sandbox.Hosts{"*.a.example"}, true},
		{sandbox.Hosts{"a.example"}, sandbox.Hosts{"*.a.example"}, false},
		{sandbox.Hosts{"*.a.example"}, sandbox.Hosts{"*.a.example"}, true},
		{sandbox.Hosts{"*.x.a.example"}, sandbox.Hosts{"*.a.example"}, true},
		{sandbox.Hosts{"*.a.example"}, sandbox.Hosts{"*.x.a.example"}, false},
		{sandbox.Hosts{"*.a.example"}, sandbox.Hosts{"a.example"}, false},
		{sandbox.Hosts{"*.ba.example"}, sandbox.Hosts{"*.a.example"}, false},
		{sandbox.Hosts{"192.0.2.1"}, sandbox.Hosts{"192.0.2.1"}, true},
		{sandbox.Hosts{"[2001:db8::1]:443"}, sandbox.Hosts{"2001:db8:0::1"}, true},
		{sandbox.Hosts{"192.0.2.1"}, sandbox.Hosts{"*.2.1"}, false},
	} {
		s := sandbox.Settings{Profile: sandbox.Workspace, Network: test.network, Egress: sandbox.Egress{Confidential: test.egress}}
		if got := s.Contains(envelope.Confidential); got != test.want {
			t.Errorf("%v is within %v = %v; want %v", test.network, test.egress, got, test.want)
		}
		if len(test.network) > 0 && s.Contains(envelope.Internal) {
			t.Errorf("%v may see what is internal, and nothing says so", test.network)
		}
	}
	if (sandbox.Settings{}).Contains(envelope.Public) {
		t.Error("no sandbox contains anything")
	}
}
