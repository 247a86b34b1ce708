package dirtree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/stores/dirtree"
)

// makeSetID makes files with the set-user-id or set-group-id bit in a directory.
func makeSetID(t *testing.T, dir string, names ...string) {
	t.Helper()
	for i, name := range names {
		path := filepath.Join(dir, name)
		mode := []os.FileMode{0o755 | os.ModeSetuid, 0o755 | os.ModeSetgid}[i%2]
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func setID(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
}

func TestSetUserIDFilesAreFoundAndTheirBitsTakenAway(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	makeSetID(t, outside, "linked", "hard")
	makeSetID(t, dir, "top", "a/b/below")
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(outside, "hard"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	s := dirtree.SetIDSearch{Entries: 100, Time: time.Minute}
	s.In(dir, true)
	want := map[string]bool{"top": true, "a/b/below": true, "hard": false}
	for _, f := range s.Found {
		name, _ := filepath.Rel(dir, f.Path)
		if cleared, known := want[name]; !known || cleared != f.Cleared || setID(f.Path) == cleared {
			t.Errorf("found %+v; want the bits taken away: %v", f, cleared)
		}
		delete(want, name)
	}
	if len(want) > 0 || s.Ended != "" {
		t.Errorf("not found: %v, ended %q", want, s.Ended)
	}
	if !setID(filepath.Join(outside, "linked")) || !setID(filepath.Join(outside, "hard")) {
		t.Error("a file outside of the directory lost its bits")
	}
}

func TestSetUserIDFilesFromBeforeAreNotNamed(t *testing.T) {
	dir := t.TempDir()
	makeSetID(t, dir, "old")
	s := dirtree.SetIDSearch{Since: time.Now().Add(time.Hour), Entries: 100, Time: time.Minute}
	s.In(dir, true)
	if len(s.Found) > 0 || !setID(filepath.Join(dir, "old")) {
		t.Errorf("found %v; want nothing, and nothing changed", s.Found)
	}
}

func TestASearchForSetUserIDFilesHasABound(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		makeSetID(t, dir, fmt.Sprintf("d%d/file", i))
	}
	s := dirtree.SetIDSearch{Entries: 60, Time: time.Minute}
	s.In(dir, false)
	if len(s.Found) == 0 || len(s.Found) > 20 || !strings.Contains(s.Ended, "more than 60 entries") {
		t.Errorf("found %d files, ended %q; want about 10, and that there are more than 60 entries", len(s.Found), s.Ended)
	}
	if slices.ContainsFunc(s.Found, func(f dirtree.SetIDFile) bool { return f.Cleared || !setID(f.Path) }) {
		t.Error("bits were taken away, which nothing asked for")
	}
}
