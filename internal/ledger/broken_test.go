package ledger

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A frame of which nobody knows whether it is on the disk was not durable, so its
// group has failed: it is not taken up once the same was done in another way, and
// what was durable before it is.
func TestAFrameThatFailedIsNotTakenUpBesideWhatCameInstead(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, l *Ledger){
		"a group": func(t *testing.T, l *Ledger) {
			if err := addNamed(l, "b"); err != nil {
				t.Errorf("Update(after a write that failed) = %v; want nil", err)
			}
		},
		"a reader, and then a group": func(t *testing.T, l *Ledger) {
			if tasks, err := l.Tasks(t.Context(), Filter{}); err != nil || len(tasks) != 1 {
				t.Errorf("Tasks() = %d, %v; want the one that is durable", len(tasks), err)
			}
			if err := addNamed(l, "b"); err != nil {
				t.Errorf("Update(after a write that failed) = %v; want nil", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			l, _, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := addNamed(l, "a"); err != nil {
				t.Fatal(err)
			}
			failToSync(t, l, path, func() {
				if err := addNamed(l, "b"); err == nil {
					t.Fatal("Update(on a disk that fails) = nil; want an error")
				}
			})
			next(t, l)
			wantTasks(t, l, "a", "b")
			after, opened, err := Open(copyLedger(t, path))
			if err != nil || opened.Aside != "" {
				t.Fatalf("Open(after a power cut) = %+v, %v; want the ledger", opened, err)
			}
			defer after.Close()
			wantTasks(t, after, "a", "b")
		})
	}
}

// failToSync has the next frame reach the disk without anybody being told so.
func failToSync(t *testing.T, l *Ledger, path string, try func()) {
	t.Helper()
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	active := l.redo.active
	real := l.redo.files[active]
	broken, err := os.Open(path + redoEnds[active]) // which nobody can write to
	if err != nil {
		t.Fatal(err)
	}
	l.redo.files[active] = broken
	try()
	l.redo.files[active] = real
	if _, err := real.WriteAt(l.redo.blocks, l.redo.offset); err != nil {
		t.Fatal(err)
	}
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
}

func addNamed(l *Ledger, id envelope.ID) error {
	return l.Update(context.Background(), func(tx *Tx) error {
		_, err := tx.Add(task.Task{ID: id, Revision: 1, State: task.Queued}, nil)
		return err
	})
}

func wantTasks(t *testing.T, l *Ledger, want ...envelope.ID) {
	t.Helper()
	tasks, err := l.Tasks(t.Context(), Filter{})
	if err != nil || len(tasks) != len(want) {
		t.Fatalf("Tasks() = %d, %v; want %v", len(tasks), err, want)
	}
	for i, row := range tasks {
		if row.ID != want[i] {
			t.Errorf("task %d is %s; want %s", i, row.ID, want[i])
		}
	}
}
