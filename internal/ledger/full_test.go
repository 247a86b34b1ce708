package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// failIndex has every write of an index fail until undo is called.
func failIndex(t *testing.T) (undo func()) {
	t.Helper()
	undo = fault.FailReads(func(what string) error {
		if what == "write index" {
			return syscall.ENOSPC
		}
		return nil
	})
	t.Cleanup(undo)
	return undo
}

// While the index can't be written, reads answer with all that is durable, and what can be
// durable still is. Afterwards nobody can tell.
func TestReadsAnswerWhileTheIndexCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	seqs := add(t, l, newTask(1), newTask(2), newTask(3))
	for round := range 2 {
		whole := countTasks(t, l)
		undo := failIndex(t)
		for n := range 3 {
			add(t, l, newTask(10*(round+1)+n))
			if got := countTasks(t, l); got != whole+n+1 {
				t.Errorf("%d tasks; want %d", got, whole+n+1)
			}
		}
		state := task.Held
		if round == 1 {
			state = task.Queued
		}
		move(t, l, seqs[0], map[int]task.State{0: task.Queued, 1: task.Held}[round], 0, task.Change{To: state})
		if got, err := l.Tasks(t.Context(), ledger.Filter{States: []task.State{state}, Limit: 1}); err != nil || len(got) != 1 || got[0].Seq != seqs[0] {
			t.Errorf("Tasks(%s) = %v, %v; want the one that was moved", state, ids(got), err)
		}
		want := books(t, l.Reader)
		if diff := cmp.Diff(want, booksBeside(t, path)); diff != "" {
			t.Errorf("a reader beside it (-want +got):\n%s", diff)
		}
		undo()
		awaitIndex(t, l)
		if diff := cmp.Diff(want, books(t, l.Reader)); diff != "" {
			t.Errorf("when the index has it (-want +got):\n%s", diff)
		}
	}
}

// A start without room for the index answers, and takes nothing on until there is room: what
// it has to know of tasks that are over is not in the index.
func TestALedgerOpensWhileTheIndexCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	countTasks(t, l)
	early := copyOf(t, path)
	add(t, l, newTask(1), newTask(2))
	want := books(t, l.Reader)
	text, err := os.ReadFile(segment(path))
	if err != nil {
		t.Fatal(err)
	}
	write(t, segment(early), text)
	undo := failIndex(t)
	next := openAt(t, early)
	if diff := cmp.Diff(want, books(t, next.Reader)); diff != "" {
		t.Errorf("without room (-want +got):\n%s", diff)
	}
	if open, err := next.Unfinished(t.Context(), 0, 10); err != nil || len(open) != 2 {
		t.Errorf("Unfinished() = %v, %v; want two tasks", ids(open), err)
	}
	if err := addOne(next, newTask(3)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Update() = %v; want that there is no room", err)
	}
	undo()
	awaitIndex(t, next)
	if diff := cmp.Diff(want, books(t, next.Reader)); diff != "" {
		t.Errorf("with room (-want +got):\n%s", diff)
	}
	if err := addOne(next, newTask(1)); err == nil {
		t.Error("a task was added twice")
	}
	add(t, next, newTask(3))
}

// A full disk fails what is tried and spoils nothing: readers, the daemon, and the next one
// answer on it. When there is room again, the ledger goes on by itself.
func TestAFullDiskPasses(t *testing.T) {
	dir := mountSmall(t)
	path, filler := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "filler")
	write(t, filler, make([]byte, 1<<20))
	out, err := play(t, "full disk", path).Output() // and it is gone without closing
	var written, read int
	if err == nil {
		_, err = fmt.Sscan(string(out), &written, &read)
	}
	if err != nil || read != written || written < 50 {
		t.Fatalf("%d of %d tasks were read on a full disk, %v", read, written, err)
	}
	fillDisk(t, filler)
	want := booksBeside(t, path)
	l := openAt(t, path)
	if diff := cmp.Diff(want, books(t, l.Reader)); diff != "" || countTasks(t, l) != written {
		t.Errorf("the next daemon has %d tasks; want %d (-reader +daemon):\n%s", countTasks(t, l), written, diff)
	}
	for n := written + 1; ; n++ {
		if err = writeOne(l, n); err != nil {
			break
		}
		written = n // it fits into a page that the journal has
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Update() = %v; want that there is no room", err)
	}
	if got := countTasks(t, l); got != written {
		t.Errorf("%d tasks; want %d", got, written)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	awaitIndex(t, l)
	if err := writeOne(l, written+1); err != nil {
		t.Errorf("Update() = %v when there is room again", err)
	}
	if got := whole(t, l.Reader); got != written+1 {
		t.Errorf("%d tasks; want %d", got, written+1)
	}
}

// What was closed in order opens on a full disk and answers.
func TestAClosedLedgerOpensOnAFullDisk(t *testing.T) {
	dir := mountSmall(t)
	path, filler := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "filler")
	write(t, filler, nil)
	closeNow(t, path, 3)
	fillDisk(t, filler)
	for range 2 {
		l, _, err := ledger.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := countTasks(t, l); got != 3 {
			t.Errorf("%d tasks; want 3", got)
		}
		if diff := cmp.Diff(books(t, l.Reader), booksBeside(t, path)); diff != "" {
			t.Errorf("a reader (-daemon +reader):\n%s", diff)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// mountSmall returns a directory with a file system of its own.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size=3m"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk leaves no room on the disk of a file.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for err == nil {
		_, err = file.Write(bytes.Repeat([]byte{'x'}, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// awaitIndex waits until the index has what is durable.
func awaitIndex(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	for n := 0; !l.Indexed(); n++ {
		if n > 1000 {
			t.Fatal("the index was not written again")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func addOne(l *ledger.Ledger, row task.Task) error {
	return l.Update(context.Background(), func(tx *ledger.Tx) error {
		_, err := tx.Add(row, []byte("line"))
		return err
	})
}

func countTasks(t *testing.T, l *ledger.Ledger) int {
	t.Helper()
	n, err := l.Count(t.Context(), ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// booksBeside is what a reader says beside a daemon, or without one.
func booksBeside(t *testing.T, path string) []any {
	t.Helper()
	r, err := ledger.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	all := books(t, r)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return all
}

// Whoever reads while the index fails and comes back sees each update at once.
func TestReadsBesideUpdatesWhileTheIndexFailsNowAndThen(t *testing.T) {
	l := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	var reads atomic.Int64
	undo := fault.FailReads(func(what string) error {
		if what == "write index" && reads.Load()%20 < 10 {
			return syscall.ENOSPC
		}
		return nil
	})
	defer undo()
	var writer sync.WaitGroup
	var done atomic.Int64
	writer.Go(func() {
		for n := range 200 {
			acceptLine(t, l, n)
			done.Store(int64(n + 1))
		}
	})
	for last := 0; last < 200; {
		promised := int(done.Load())
		last = countTasks(t, l)
		if reads.Add(1); last < promised {
			t.Fatalf("%d tasks; want the %d that are durable", last, promised)
		}
	}
	writer.Wait()
	undo()
	awaitIndex(t, l)
	whole(t, l.Reader)
}
