package mailbox_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/mailbox"
)

// cast are the roles of the test binary as another process.
var cast = map[string]func(args []string){
	"lock": func(args []string) { // holds the mailbox until its input ends
		box, err := mailbox.Open(args[0])
		if err == nil {
			err = box.Lock()
		}
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin)
	},
	"die holding": func(args []string) { // locks, and dies while a child still has its descriptors
		dir, err := os.Open(args[0])
		if err == nil {
			err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
		}
		child := exec.Command("sleep", "0.3")
		child.ExtraFiles = []*os.File{dir}
		fmt.Println(errors.Join(err, child.Start()))
	},
}

func TestMain(m *testing.M) {
	if play := cast[os.Getenv("MAILBOX_TEST_PLAYS")]; play != nil {
		play(os.Args[1:])
		return
	}
	goleak.VerifyTestMain(m)
}

// open opens a mailbox in a new directory.
func open(t testing.TB) *mailbox.Box {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "box"))
}

func openAt(t testing.TB, path string) *mailbox.Box {
	t.Helper()
	box, err := mailbox.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

// write makes the file hold text, in place.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// add appends text to the file.
func add(t testing.TB, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func parse(t testing.TB, text string) envelope.ID {
	t.Helper()
	id, err := envelope.ParseID(text)
	must(t, err)
	return id
}
