package backup

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/mailbox"
)

const line = "{\"task_id\":\"a\"}\n"

// A program appends a task to a file that is copied already.
func TestAMoveToAnotherFileSystemTakesALineThatComesWhileItCopies(t *testing.T) {
	from, to := twoDisks(t)
	appended := false
	during := watchedContext{t.Context(), func() {
		if _, err := os.Stat(taskFile(to.Root + ".moving")); err == nil && !appended {
			appended = true
			appendLine(t, from.Root)
		}
	}}
	if err := os.WriteFile(filepath.Join(from.Root, "zzz"), nil, 0o600); err != nil { // it is copied after tasks/
		t.Fatal(err)
	}
	if err := Move(during, from, to); err != nil {
		t.Fatal(err)
	}
	if !appended {
		t.Fatal("nothing was appended during the copy")
	}
	wantMoved(t, from, to, line+line)
}

// A move that was killed is repeated, wherever it was.
func TestAMoveToAnotherFileSystemCanBeRepeated(t *testing.T) {
	for _, reached := range []string{"copying", "copied", "root renamed", "state renamed", "state's own", "adopted", "state removed", "root removed"} {
		t.Run(reached, func(t *testing.T) {
			from, to := twoDisks(t)
			moveUpTo(t, from, to, reached)
			if err := Move(t.Context(), from, to); err != nil {
				t.Fatal(err)
			}
			wantMoved(t, from, to, line)
		})
	}
}

func TestAStaleSocketDoesNotStopAMove(t *testing.T) {
	from, to := twoDisks(t)
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(from.State, "box.sock")})
	if err != nil {
		t.Fatal(err)
	}
	socket.SetUnlinkOnClose(false)
	if err := errors.Join(socket.Close(), Move(t.Context(), from, to)); err != nil {
		t.Fatal(err)
	}
	wantMoved(t, from, to, line)
}

func TestARefusedMoveLeavesNothing(t *testing.T) {
	from, to := twoDisks(t)
	if err := unix.Mkfifo(filepath.Join(from.State, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Move(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "fifo can't be copied") {
		t.Errorf("Move(with a FIFO) = %v; want that it can't be copied", err)
	}
	if left, err := os.ReadDir(filepath.Dir(to.Root)); err != nil || len(left) != 0 {
		t.Errorf("beside the new mailbox are %v, %v; want nothing", left, err)
	}
	if text, err := os.ReadFile(taskFile(from.Root)); string(text) != line || err != nil {
		t.Errorf("the old task file has %q, %v; want %q", text, err, line)
	}
}

// A mailbox that is there is another one, whatever its state says.
func TestAMoveNeverTakesAMailboxForItsCopy(t *testing.T) {
	from, to := twoDisks(t)
	makeMailbox(t, to)
	if err := Move(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("Move(to another mailbox) = %v; want that it is not empty", err)
	}
	if text, err := os.ReadFile(taskFile(from.Root)); string(text) != line || err != nil {
		t.Errorf("the old task file has %q, %v; want %q", text, err, line)
	}
}

// twoDisks makes a mailbox, and names a place for it on another file system.
func twoDisks(t *testing.T) (from, to Location) {
	t.Helper()
	here := t.TempDir()
	there, err := os.MkdirTemp("/dev/shm", "move")
	if err != nil {
		t.Skip("there is no second file system: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(there) })
	var one, other unix.Stat_t
	if err := errors.Join(unix.Stat(here, &one), unix.Stat(there, &other)); err != nil || one.Dev == other.Dev {
		t.Skip("there is no second file system: ", err)
	}
	from = Location{Root: filepath.Join(here, "box"), State: filepath.Join(here, "state")}
	makeMailbox(t, from)
	return from, Location{Root: filepath.Join(there, "box"), State: filepath.Join(there, "state")}
}

func makeMailbox(t *testing.T, at Location) {
	t.Helper()
	if err := errors.Join(os.Mkdir(at.Root, 0o700), os.Mkdir(at.State, 0o700)); err != nil {
		t.Fatal(err)
	}
	box, err := mailbox.Open(at.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	appendLine(t, at.Root)
	state, err := mailbox.OpenState(at.State, at.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(state.Claim(at.Root), state.Close()); err != nil {
		t.Fatal(err)
	}
}

func taskFile(root string) string { return filepath.Join(root, "tasks", "a.jsonl") }

func appendLine(t *testing.T, root string) {
	t.Helper()
	file, err := os.OpenFile(taskFile(root), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = file.WriteString(line)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantMoved(t *testing.T, from, to Location, lines string) {
	t.Helper()
	if text, err := os.ReadFile(taskFile(to.Root)); string(text) != lines || err != nil {
		t.Errorf("the new task file has %q, %v; want %q", text, err, lines)
	}
	if owner, err := os.ReadFile(filepath.Join(to.State, "root")); string(owner) != to.Root+"\n" || err != nil {
		t.Errorf("the state belongs to %q, %v; want %q", owner, err, to.Root)
	}
	for _, old := range []string{from.Root, from.State} {
		if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v; want it removed", old, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(to.Root)); err != nil || len(left) != 2 {
		t.Errorf("beside each other are %v, %v; want the mailbox and its state", left, err)
	}
}

// A watchedContext calls a function whenever its error is asked for.
type watchedContext struct {
	context.Context
	asked func()
}

func (c watchedContext) Err() error {
	c.asked()
	return c.Context.Err()
}
