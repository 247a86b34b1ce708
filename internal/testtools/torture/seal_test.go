package torture_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

// audit has the program compare all events with their seals.
func (s *site) audit(t *testing.T) (said string) {
	t.Helper()
	cmd := exec.Command(daemon, "--config", s.path("config.yaml"), "audit")
	cmd.Env = s.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("audit: %v\n%s", err, out)
	}
	return string(out)
}

// A daemon that dies around a seal leaves the seal or none, and the next one seals what is left.
func TestAnAuditFindsNothingAfterADeathWhileSealing(t *testing.T) {
	slowtest.SkipShort(t, "it starts two daemons for each point")
	for _, fault := range []string{
		"key-file-synced:1", "key-file-synced:2", "seal-signed:1", "sealed:1", "anchored:1", "seal-signed:2", "sealed:2", "anchored:2",
	} {
		s := newSite(t)
		w := &writer{site: s, book: newBook(), chance: chance(1 << 35), name: "s", into: "s", parts: []string{"fast"}}
		if err := w.fill(); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(fault, ":2") && !strings.HasPrefix(fault, "key") { // the point of a second life
			s.live(t, "")
			if err := w.fill(); err != nil {
				t.Fatal(err)
			}
			fault = strings.TrimSuffix(fault, ":2") + ":1"
		}
		s.live(t, fault)
		if _, err := os.Stat(s.path("died")); err != nil {
			t.Fatalf("the daemon didn't die at %s", fault)
		}
		s.audit(t)
		s.live(t, "")
		if said := s.audit(t); strings.Contains(said, "unsealed") || strings.Contains(said, "not sealed") || !strings.Contains(said, "no difference found") {
			t.Errorf("after a death at %s:\n%s", fault, said)
		}
		s.end()
	}
}
