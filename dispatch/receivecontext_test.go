package dispatch_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CLOWL-14 to CLOWL-17.
func TestTheContextOfARequestIsWhatItsHashSays(t *testing.T) {
	e := startEngine(t)
	e.must(os.WriteFile(filepath.Join(e.parts.Box.Path(), "notes.md"), []byte("notes"), 0o600))
	sum := sha256.Sum256([]byte("notes"))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	ctx := func(ref, inline, hash string) string {
		quoted := func(s string) string {
			if s == "" {
				return "null"
			}
			return fmt.Sprintf("%q", s)
		}
		return fmt.Sprintf(`,"ctx":{"ref":%s,"inline":%s,"hash":%s}`, quoted(ref), quoted(inline), quoted(hash))
	}
	for mid, c := range map[string]struct {
		ctx, code string
		kind      envelope.Kind
	}{
		"right":    {ctx("notes.md", "", right), "", ""},
		"unhashed": {ctx("notes.md", "", ""), "", ""},
		"wrong":    {ctx("notes.md", "", wrong), "E003", envelope.ContextIntegrity},
		"inlined":  {ctx("notes.md", "these", wrong), "E003", envelope.ContextIntegrity},
		"missing":  {ctx("none.md", "", ""), "E003", envelope.ContextUnavailable},
		"url":      {ctx("https://example.org/notes.md", "", ""), "E003", envelope.ContextUnavailable},
		"outside":  {ctx("/etc/passwd", "these", ""), "E016", envelope.SecurityViolation},
		"degraded": {ctx("none.md", "these", ""), "", ""},
		"long":     {ctx("", strings.Repeat("x", 2001), ""), "E008", envelope.ContextTooLarge},
	} {
		e.say(word{mid: mid, p: "REQ", from: "ann", to: "quick", more: c.ctx}.line())
		row := e.await(mid, task.Done)
		if row.Kind != c.kind {
			t.Errorf("%s ends %s (%s); want %q", mid, row.Status, row.Kind, c.kind)
		}
		if c.code != "" {
			e.wantError("ann", mid, c.code, c.code != "E016")
		}
	}
	e.wantEvent("degraded", "context.degraded")
	if kinds, _ := e.history("right"); slices.Contains(kinds, "context.degraded") {
		t.Errorf("events of right = %v; want nothing of a degraded context", kinds)
	}
}

// The content may have changed by the time it is used.
func TestAContextIsLookedAtAgainBeforeItsTaskIsRun(t *testing.T) {
	e := startEngine(t)
	path := filepath.Join(e.parts.Box.Path(), "notes.md")
	e.must(os.WriteFile(path, []byte("notes"), 0o600))
	sum := sha256.Sum256([]byte("notes"))
	e.must(e.Pause(t.Context(), "quick", me))
	e.say(word{mid: "m1", p: "REQ", from: "ann", to: "quick", more: fmt.Sprintf(`,"ctx":{"ref":"notes.md","hash":%q}`, hex.EncodeToString(sum[:]))}.line())
	e.await("m1", task.Held)
	e.must(os.WriteFile(path, []byte("forged"), 0o600))
	e.must(e.Resume(t.Context(), "quick", me))
	if row := e.await("m1", task.Done); row.Kind != envelope.ContextIntegrity {
		t.Errorf("m1 ends %s (%s); want context_integrity", row.Status, row.Kind)
	}
}
