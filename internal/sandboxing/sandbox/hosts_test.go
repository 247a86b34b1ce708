package sandbox_test

import (
	"testing"

	"mailboxd/internal/sandboxing/sandbox"
)

// A list entry that can't be what its writer meant is refused, not ignored.
func TestAnEntryOfANetworkListIsAHostAndAPort(t *testing.T) {
	for entry, fits := range map[string]bool{
		"api.example.com": true, "API-z_9.Example.com:8443": true, "*.example.com": true, "azAZ09": true, "localhost:1": true, "a:65535": true,
		"192.168.1.7:8080": true, "[::1]:443": true,
		"": false, "*.": false, "a:0": false, "a:65536": false, "a:-1": false, "a:https": false,
		"a b": false, "a*b": false, "a/b": false, "http://a": false, "caf\u00e9": false,
		"a`": false, "a{": false, "a@": false, "a[b": false, "a,b": false, "a;b": false,
	} {
		if err := sandbox.CheckHost(entry); (err == nil) != fits {
			t.Errorf("CheckHost(%q) = %v; want it accepted: %t", entry, err, fits)
		}
	}
}

func TestASizeHasNoSignAndFitsAnInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1KiB": 1 << 10, "4611686018427387904": 1 << 62, "4194304TiB": 1 << 62} {
		if got, err := sandbox.ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "4611686018427387905", "4194305TiB"} {
		if got, err := sandbox.ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d; want an error", text, got)
		}
	}
}
