package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/stores/ledger"
)

// makeBackup makes a backup of a mailbox with a ledger, and a place to restore it.
func makeBackup(t *testing.T) (dir string, at Location) {
	t.Helper()
	here := t.TempDir()
	from := Location{Root: filepath.Join(here, "box"), State: filepath.Join(here, "state")}
	makeMailbox(t, from)
	l, _, err := ledger.Open(from.Ledger())
	if err == nil {
		err = l.Close()
	}
	dir = filepath.Join(here, "backup")
	if err := errors.Join(err, os.Symlink("a.jsonl", taskFile(from.Root)+".link"), os.Mkdir(filepath.Join(from.Root, "queues"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(t.Context(), from, dir, "test"); err != nil {
		t.Fatal(err)
	}
	return dir, Location{Root: filepath.Join(here, "box2"), State: filepath.Join(here, "state2")}
}

func restore(t *testing.T, dir string, at Location) (Restoration, error) {
	t.Helper()
	return Restore(t.Context(), dir, at, Options{MaxLine: 1 << 20})
}

func TestABackupIsRestoredAsItWasMade(t *testing.T) {
	dir, at := makeBackup(t)
	r, err := restore(t, dir, at)
	if err != nil || !r.Verified {
		t.Errorf("Restore = %+v, %v; want it verified", r, err)
	}
	if target, err := os.Readlink(taskFile(at.Root) + ".link"); target != "a.jsonl" {
		t.Errorf("the link leads to %q, %v; want a.jsonl", target, err)
	}
}

func TestABackupThatWasEditedIsRefusedByPath(t *testing.T) {
	edit := map[string]struct {
		do   func(dir string) error
		want string
	}{
		"a changed file": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "mailbox/tasks/a.jsonl"), []byte("{\"task_id\":\"b\"}\n"), 0o600)
		}, "changed mailbox/tasks/a.jsonl"},
		"a removed file":      {func(dir string) error { return os.Remove(filepath.Join(dir, "state/ledger.db")) }, "removed state/ledger.db"},
		"a removed directory": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "mailbox/tasks")) }, "removed mailbox/tasks"},
		"an added file":       {func(dir string) error { return os.WriteFile(filepath.Join(dir, "state/runs"), nil, 0o600) }, "added state/runs"},
		"a file named config": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "config"), nil, 0o600) }, "changed config"},
		"a file beside":       {func(dir string) error { return os.WriteFile(filepath.Join(dir, "extra"), nil, 0o600) }, "added extra"},
		"a link to another file": {func(dir string) error {
			path := filepath.Join(dir, "mailbox/tasks/a.jsonl")
			return errors.Join(os.Rename(path, filepath.Join(dir, "../a.jsonl")), os.Symlink("../../../a.jsonl", path))
		}, "changed mailbox/tasks/a.jsonl"},
		"a link to another target": {func(dir string) error {
			path := filepath.Join(dir, "mailbox/tasks/a.jsonl.link")
			return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path))
		}, "changed mailbox/tasks/a.jsonl.link"},
		"a link to a directory": {func(dir string) error {
			path := filepath.Join(dir, "state")
			return errors.Join(os.Rename(path, filepath.Join(dir, "../moved")), os.Symlink("../moved", path))
		}, "changed state"},
		"changed digests": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "digests.jsonl"), nil, 0o600)
		}, "changed digests.jsonl"},
		"removed digests": {func(dir string) error { return os.Remove(filepath.Join(dir, "digests.jsonl")) }, "removed digests.jsonl"},
		"a changed record": {func(dir string) error {
			path := filepath.Join(dir, "backup.json")
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), "\"tasks\": 0", "\"tasks\": 7", 1)), 0o600))
		}, "changed backup.json"},
		"a record of the earlier version": {func(dir string) error {
			path := filepath.Join(dir, "backup.json")
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), "\"format\": 2", "\"format\": 1", 1)), 0o600))
		}, "changed backup.json"},
	}
	for name, e := range edit {
		t.Run(name, func(t *testing.T) {
			dir, at := makeBackup(t)
			if err := e.do(dir); err != nil {
				t.Fatal(err)
			}
			_, err := restore(t, dir, at)
			edited, ok := errors.AsType[*EditedError](err)
			if !ok || len(edited.Changes) != 1 || edited.Changes[0] != e.want {
				t.Errorf("Restore = %v; want %q alone", err, e.want)
			}
			if exists(at.Root) || exists(at.State) {
				t.Error("something was restored; want nothing")
			}
		})
	}
}

func TestABackupOfTheEarlierVersionIsRestoredUnchecked(t *testing.T) {
	dir, at := makeBackup(t)
	record := `{"format": 1, "made": "2026-01-01T00:00:00Z", "mailboxd": "old", "root": "/r", "state": "/s", "tasks": 0, "open": 0}`
	err := errors.Join(os.Remove(filepath.Join(dir, "digests.jsonl")), os.WriteFile(filepath.Join(dir, "backup.json"), []byte(record), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	r, err := restore(t, dir, at)
	var said strings.Builder
	if err := errors.Join(err, r.Print(&said)); err != nil || r.Verified || !strings.Contains(said.String(), "made no digests") {
		t.Errorf("Restore = %+v, %v, printed %s; want it restored with a word", r, err, said.String())
	}
}

// A file of the mailbox can claim any size: reading it whole would take hours.
func TestAFileOfHolesIsDigestedByItsData(t *testing.T) {
	here := t.TempDir()
	digest := func(name string, at int64) digested {
		t.Helper()
		file, err := os.Create(filepath.Join(here, name))
		if err == nil {
			_, err = file.WriteAt([]byte("data"), at)
		}
		if err = errors.Join(err, file.Truncate(1<<44-1<<20), file.Close()); err != nil {
			t.Skip("the file system has no files of 16 TiB: ", err)
		}
		root, err := os.OpenRoot(here)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		of := digested{}
		d := digester{sparse: mostlyHoles}
		if err := d.file(root, name, &of); err != nil {
			t.Fatal(err)
		}
		return of
	}
	one, same, other := digest("one", 1<<30+7), digest("same", 1<<30+7), digest("other", 1<<30+8)
	if !one.Sparse || one != same || one == other {
		t.Errorf("digests %v, %v, %v; want the first two alike", one, same, other)
	}
}
