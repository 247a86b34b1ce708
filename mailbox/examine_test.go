package mailbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/mailbox"
)

func TestExamineReportsTheErrorsOfOpenAndMakesNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "box")
	if _, err := mailbox.Examine(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Examine(nothing) = %v; want fs.ErrNotExist", err)
	}
	must(t, os.Mkdir(root, 0o700))
	if _, err := mailbox.Examine(root); err != nil {
		t.Errorf("Examine(empty directory) = %v; want nil: Open would make the rest", err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("Examine made %v, %v; want nothing made", entries, err)
	}
	must(t, os.Mkdir(filepath.Join(root, "tasks"), 0o700))
	must(t, os.Chmod(filepath.Join(root, "tasks"), 0o777))
	_, err := mailbox.Examine(root)
	unfit, ok := errors.AsType[*mailbox.UnfitError](err)
	if !ok || unfit.Hint != "chmod o-w "+filepath.Join(root, "tasks") {
		t.Errorf("Examine(open to all) = %v; want an UnfitError with the chmod that fixes it", err)
	}
	if _, same := mailbox.Open(root); same == nil || !strings.Contains(same.Error(), unfit.Error()) {
		t.Errorf("Open = %v; want the same as Examine says", same)
	}
}

func TestServedByFindsTheHolderOfTheLockAndTakesNone(t *testing.T) {
	box := open(t)
	if pid, served, err := mailbox.ServedBy(box.Path()); err != nil || served {
		t.Errorf("ServedBy(unlocked) = %d, %v, %v; want nobody", pid, served, err)
	}
	must(t, box.Lock())
	if pid, served, err := mailbox.ServedBy(box.Path()); err != nil || !served || pid != os.Getpid() {
		t.Errorf("ServedBy(locked) = %d, %v, %v; want process %d", pid, served, err, os.Getpid())
	}
}
