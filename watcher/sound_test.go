package watcher_test

import (
	"os"
	"path/filepath"
	"testing"

	"mailboxd/watcher"
)

func TestARescanRenewsOnlyInvalidWatches(t *testing.T) {
	for name, c := range map[string]struct {
		unseen func(above string) error
		want   bool
	}{
		"nothing": {func(string) error { return nil }, true},
		"what the root is in was replaced": {func(above string) error {
			if err := os.Rename(above, above+".old"); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(above, "root/tasks"), 0o700)
		}, false},
		"what the root is in was moved": {func(above string) error { return os.Rename(above, above+".old") }, false},
	} {
		above := filepath.Join(t.TempDir(), "above")
		dir := filepath.Join(above, "root/tasks")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		got := watcher.IsSound([]string{dir}, func() {
			if err := c.unseen(above); err != nil {
				t.Fatal(err)
			}
		})
		if got != c.want {
			t.Errorf("%s: the watches are sound: %v; want %v", name, got, c.want)
		}
	}
	if watcher.IsSound([]string{filepath.Join(t.TempDir(), "not/yet")}, func() {}) {
		t.Error("a directory that is not there counts as watched")
	}
}
