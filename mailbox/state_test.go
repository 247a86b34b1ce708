package mailbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mailboxd/mailbox"
)

func state(t *testing.T) *mailbox.State {
	t.Helper()
	dir := t.TempDir()
	s, err := mailbox.OpenState(dir+"/state", dir+"/box")
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestTheStateIsPrivate(t *testing.T) {
	dir := t.TempDir()
	s := state(t)
	if info, err := os.Stat(s.Path()); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("state: %v, %v; want drwx------", info.Mode(), err)
	}
	must(t, os.Mkdir(dir+"/open", 0o700))
	must(t, os.Chmod(dir+"/open", 0o750))
	must(t, os.Mkdir(dir+"/box", 0o700))
	must(t, os.Symlink("box", dir+"/link"))
	for path, want := range map[string]string{
		dir + "/open":     "chmod 700 " + dir + "/open",
		dir + "/box":      "inside the mailbox",
		dir + "/box/x":    "inside the mailbox",
		dir + "/link/x/y": "inside the mailbox",
	} {
		s, err := mailbox.OpenState(path, dir+"/box")
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenState(%s) = %v; want an error with %q", path, err, want)
		}
	}
}

func TestAStateDirectoryBelongsToOneMailboxAndOneProcess(t *testing.T) {
	dir := t.TempDir()
	open := func(root string) error {
		s, err := mailbox.OpenState(dir+"/state", dir+"/"+root)
		must(t, err)
		t.Cleanup(func() { s.Close() })
		return s.Claim(dir + "/" + root)
	}
	must(t, os.Mkdir(dir+"/a", 0o700))
	must(t, os.Symlink("a", dir+"/link"))
	first, err := mailbox.OpenState(dir+"/state", dir+"/a")
	must(t, err)
	must(t, first.Claim(dir+"/a"))
	must(t, first.Claim(dir+"/link"))
	for _, root := range []string{"a", "b"} {
		if locked, ok := errors.AsType[*mailbox.LockedError](open(root)); !ok || locked.PID != os.Getpid() {
			t.Errorf("Claim(%s) while it is claimed = %v; want a LockedError that names us", root, locked)
		}
	}
	must(t, first.Close())
	want := "state directory " + dir + "/state belongs to mailbox " + dir + "/a"
	if err := open("b"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Claim(b) = %v; want %q in it", err, want)
	}
	write(t, dir+"/state/root", dir) // a power cut, before its newline
	must(t, open("b"))
	if got := read(t, dir+"/state/root"); got != dir+"/b\n" {
		t.Errorf("root = %q; want the path of b", got)
	}
}

func TestARunHasADirectoryOfItsOwn(t *testing.T) { // rows 15 and 16
	s := state(t)
	for _, id := range []string{"t", ".", "-rf", strings.Repeat("x", 250)} {
		id := parse(t, id)
		dir, err := s.MakeRunDir(id, 2, 1)
		must(t, err)
		if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|0o700 || dir != s.RunDir(id, 2, 1) || filepath.Base(dir) != "2.1" {
			t.Errorf("MakeRunDir(%s) = %s, %v, %v; want the RunDir, drwx------", id, dir, info, err)
		}
		if _, err := s.MakeRunDir(id, 2, 1); !errors.Is(err, fs.ErrExist) {
			t.Errorf("MakeRunDir(%s) again = %v, want fs.ErrExist", id, err)
		}
	}
}

func TestHistoryLosesNothing(t *testing.T) {
	s := state(t)
	id := parse(t, ".")
	if _, err := s.History(id, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("History of nothing = %v, want fs.ErrNotExist", err)
	}
	for _, text := range []string{"a", "a", "b", "c", "b", "a"} {
		must(t, s.PutHistory(id, 1, []byte(text)))
	}
	if got, err := s.History(id, 1); string(got) != "a" || err != nil {
		t.Errorf("History = %q, %v; want a, nil", got, err)
	}
	dir := filepath.Join(s.Path(), "history", id.Dir())
	for name, want := range map[string]string{"1.json": "a", "1.2.json": "b", "1.3.json": "c"} {
		if got := read(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("history has %d files, want 3", len(entries))
	}
}

func TestASlugIsReadableAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, root := range []string{"/", "/home/me/mailbox", "/home/me-mailbox", "/home/me/mailbox2", "/" + strings.Repeat("deep/", 50), "/é/ü", "/a b"} {
		slug, err := mailbox.Slug(root)
		must(t, err)
		if seen[slug] || len(slug) > 49 || !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`).MatchString(slug) {
			t.Errorf("Slug(%s) = %s; want a new plain word of at most 49 bytes", root, slug)
		}
		seen[slug] = true
	}
	if slug, _ := mailbox.Slug("/home/me/mailbox"); !strings.HasPrefix(slug, "home-me-mailbox-") {
		t.Errorf("Slug = %s, want home-me-mailbox-...", slug)
	}
}

func TestDefaultStateDirFollowsXDG(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(root, link))
	slug, err := mailbox.Slug(root)
	must(t, err)
	t.Setenv("HOME", "/home/me")
	for xdg, want := range map[string]string{
		"/x":       "/x/mailboxd/" + slug,
		"":         "/home/me/.local/state/mailboxd/" + slug,
		"relative": "/home/me/.local/state/mailboxd/" + slug,
	} {
		t.Setenv("XDG_STATE_HOME", xdg)
		for _, root := range []string{root, link} {
			if got, err := mailbox.DefaultStateDir(root); got != want || err != nil {
				t.Errorf("DefaultStateDir with XDG_STATE_HOME=%q = %s, %v; want %s", xdg, got, err, want)
			}
		}
	}
}

func TestTheKeyOfApprovalsIsMadeOnce(t *testing.T) {
	s := state(t)
	first, err := s.ApprovalKey()
	must(t, err)
	again, err := s.ApprovalKey()
	must(t, err)
	if len(first) < 32 || first != again {
		t.Errorf("the key is %q, then %q; want one that nobody guesses", first, again)
	}
	if info, err := os.Stat(filepath.Join(s.Path(), "approval-key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v; want -rw-------", info, err)
	}
	if other, err := state(t).ApprovalKey(); err != nil || other == first {
		t.Errorf("another state has the key %q, %v; want another one", other, err)
	}
}
