package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mailboxd/internal/fault"
	"mailboxd/internal/journal"
)

// parts are what the test binary does as a process of its own.
var parts = map[string]func(dir string) error{
	"writer":    appendForever,
	"full disk": appendOnAFullDisk,
	"purge":     purgeAndDie,
}

func TestMain(m *testing.M) {
	if part := parts[os.Getenv("JOURNAL_TEST_PART")]; part != nil {
		if err := part(os.Getenv("JOURNAL_TEST_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0) // without Close
	}
	goleak.VerifyTestMain(m)
}

var start = time.Date(2026, 3, 4, 5, 6, 7, 890_000, time.UTC)

// newEvent is the event of a number; every third has bodies.
func newEvent(n uint64) journal.Event {
	e := journal.Event{N: n, At: start.Add(time.Duration(n) * time.Second), Kind: "task.started", Task: fmt.Sprintf("t%d", n/4), Revision: n % 3}
	if n%2 == 0 {
		e.Data = fmt.Appendf(nil, `{"attempt":%d,"list":[1,{"a":"}"}],"text":"a \"b\""}`, n)
	}
	if n%3 == 0 {
		e.Bodies = []journal.Body{
			{Name: "request", Text: fmt.Appendf(nil, `{"task_id":"t%d","note":"%s"}`, n, strings.Repeat("x", int(n%7)))},
			{Name: "result", Text: []byte(` [1, "two"] `)},
		}
	}
	return e
}

// newGroup makes the next events of a journal.
func newGroup(j *journal.Journal, count int) (group []journal.Event) {
	for i := range count {
		group = append(group, newEvent(j.Head().N+uint64(i)+1))
	}
	return group
}

func open(t testing.TB, dir string, options journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func appendGroup(t testing.TB, j *journal.Journal, count int) journal.Position {
	t.Helper()
	at, err := j.Append(newGroup(j, count))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func closeJournal(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// build makes a closed journal of groups of these sizes.
func build(t testing.TB, options journal.Options, sizes ...int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, options)
	for _, size := range sizes {
		appendGroup(t, j, size)
	}
	closeJournal(t, j)
	return dir
}

// replay returns the numbers of the events behind a position, and the end.
func replay(t testing.TB, dir string, from journal.Position) (numbers []uint64, end journal.Position) {
	t.Helper()
	end, err := journal.Replay(dir, from, func(e *journal.Event) error {
		numbers = append(numbers, e.N)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers, end
}

// wantEvents checks that a journal has the events from 1 to last.
func wantEvents(t testing.TB, dir string, last uint64) {
	t.Helper()
	numbers, end := replay(t, dir, journal.Position{})
	if uint64(len(numbers)) != last || end.N != last {
		t.Errorf("the journal has %d events and ends with %d; want %d", len(numbers), end.N, last)
	}
	for i, n := range numbers {
		if n != uint64(i)+1 {
			t.Fatalf("event %d is in the place of %d", n, i+1)
		}
	}
}

func segment(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%08d.jsonl", number))
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite is write without a moment in which the file is empty, which some file
// systems make durable.
func overwrite(t testing.TB, path string, text []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(text, 0)
	if err = errors.Join(err, file.Truncate(int64(len(text))), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// copyDir copies a journal as a kill leaves it.
func copyDir(t testing.TB, dir string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// failOnce has the next step of that name fail, after what else happens there.
func failOnce(t testing.TB, name string, also func()) {
	t.Helper()
	failed := false
	undo := fault.FailReads(func(step string) error {
		if failed || step != name {
			return nil
		}
		failed = true
		if also != nil {
			also()
		}
		return syscall.EIO
	})
	t.Cleanup(undo)
}

// wantDamage checks that an error is damage of a file and, if n is not 0, names event
// n.
func wantDamage(t testing.TB, what string, err error, file string, n uint64) {
	t.Helper()
	damage, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		t.Errorf("%s: %v; want damage of %s", what, err, file)
		return
	}
	if damage.File != file || n > 0 && (damage.First > n || damage.Last < n) {
		t.Errorf("%s: %v; want damage of %s at event %d", what, err, file, n)
	}
}
