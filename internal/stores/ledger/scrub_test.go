package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Events of earlier builds have the command line of a refused caller, with the cookie of the page.
func TestAnUpgradeRemovesCommandLinesOfRefusedCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	makeVersion(t, path, 12, `INSERT INTO events (time, kind, data) VALUES
		(1, 'control.refused', '{"verb":"page","by":"process 7 (curl -b mbx-1=CANARY http://x)","why":"GET /: it is a run"}'),
		(2, 'approval.refused', '{"by":"process 8 (agent (x) CANARY)","why":"it has the mark of a run"}'),
		(3, 'agent.paused', '{"by":"ann (kept)","agent":"a"}')`)
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	events, err := l.Events(t.Context(), "", 0, 10)
	all := ""
	for _, e := range events {
		all += string(e.Data) + "\n"
	}
	if err != nil || len(events) != 3 || strings.Contains(all, "CANARY") {
		t.Errorf("Events = %s, %v; want all three without the secret", all, err)
	}
	for _, want := range []string{`"by":"process 7"`, `"by":"process 8"`, `"verb":"page"`, `it is a run`, `ann (kept)`} {
		if !strings.Contains(all, want) {
			t.Errorf("events %s; want one with %s", all, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("CANARY")) {
		t.Errorf("the file of the ledger still has the secret: %v", err)
	}
}
