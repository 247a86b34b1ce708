package torture_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

// checkArtifacts compares each artifact with its name, and looks for those that results name. It
// returns how many results name one.
func (s *site) checkArtifacts(t *testing.T) (named int) {
	t.Helper()
	files, _ := filepath.Glob(s.path("state/artifacts/sha256/*/*"))
	whole := map[string]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		digest := sha256.Sum256(text)
		if name := filepath.Base(path); err != nil || name != hex.EncodeToString(digest[:]) {
			t.Errorf("artifact %s: %d bytes that are not what its name says, %v", name, len(text), err)
		}
		whole[filepath.Base(path)] = true
	}
	results, _ := filepath.Glob(s.path("box/results/*.json"))
	for _, path := range results {
		text, _ := os.ReadFile(path)
		for _, found := range regexp.MustCompile("artifact:sha256:([0-9a-f]*)").FindAllSubmatch(text, -1) {
			named++
			if !whole[string(found[1])] {
				t.Errorf("%s names the artifact %s, which is missing", filepath.Base(path), found[1])
			}
		}
	}
	return named
}

// A daemon that dies while it publishes leaves no half artifact, and the next one publishes again.
func TestATaskEndsWithItsArtifactAfterADeathWhilePublishing(t *testing.T) {
	slowtest.SkipShort(t, "it starts two daemons for each point")
	for _, fault := range []string{
		"artifact-synced:1", "artifact-named:1", "artifact-named:2", "artifact-named:3", "artifact-named:4", "artifact-synced:2",
	} {
		s := newSite(t)
		w := &writer{site: s, book: newBook(), chance: chance(1 << 36), name: "p", into: "p", parts: []string{"file"}}
		for range 2 {
			p := w.next("file")
			w.sent = append(w.sent, p)
			if err := w.send(p, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.live(t, fault)
		if _, err := os.Stat(s.path("died")); err != nil {
			t.Fatalf("the daemon didn't die at %s", fault)
		}
		s.checkArtifacts(t)
		s.live(t, "")
		if named := s.checkArtifacts(t); named != 2 {
			t.Errorf("after a death at %s, %d results name artifacts; want 2", fault, named)
		}
		for _, p := range w.sent {
			if text, err := os.ReadFile(s.result(p.id)); err != nil || !strings.Contains(string(text), `"status": "ok"`) {
				t.Errorf("after a death at %s, the result of %s is: %v\n%s", fault, p.id, err, text)
			}
		}
		s.checkDiary(t)
		s.audit(t)
		s.end()
	}
}
