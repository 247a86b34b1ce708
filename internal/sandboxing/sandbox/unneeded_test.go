package sandbox_test

import (
	"reflect"
	"testing"

	"mailboxd/internal/sandboxing/sandbox"
)

func TestAGateGetsItsHostsAndTheUnneededOnes(t *testing.T) {
	listed := sandbox.Hosts{"api.example.com", "*.example.net:8443"}
	for _, unneeded := range []sandbox.UnneededHosts{nil, {{Host: "*.stats.example", For: "usage = statistics"}, {Host: "up.example:8080", For: "updates"}}} {
		gotListed, got := sandbox.GateHosts(sandbox.GateArguments(listed, unneeded))
		if !reflect.DeepEqual(gotListed, listed) || !reflect.DeepEqual(got, unneeded) {
			t.Errorf("a gate got %q and %q; want %q and %q", gotListed, got, listed, unneeded)
		}
	}
}

func TestAnUnneededHostHasAUse(t *testing.T) {
	all := sandbox.UnneededHosts{{Host: "*.stats.example", For: "usage statistics"}, {Host: "up.example:8080", For: "updates"}}
	for _, c := range []struct{ name, port, want string }{
		{"a.stats.example", "443", "usage statistics"}, {"A.Stats.Example.", "443", "usage statistics"}, {"up.example", "8080", "updates"},
		{"stats.example", "443", ""}, {"a.stats.example", "80", ""}, {"up.example", "443", ""}, {"api.example.com", "443", ""},
	} {
		if got := all.For(c.name, c.port); got != c.want {
			t.Errorf("For(%q, %q) = %q; want %q", c.name, c.port, got, c.want)
		}
	}
}
