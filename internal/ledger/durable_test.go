package ledger_test

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/ledger"
)

// A copy of the files, taken the moment Update returned, is what a power cut leaves:
// everything that was synced, and nothing was closed.
func TestWhatUpdateReturnedForSurvivesAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	for n := range 20 {
		acceptLine(t, l, n)
		if n%4 == 0 { // and the index has it
			whole(t, l.Reader)
		}
		copied := copyOf(t, path)
		for range 2 {
			if got := checkBoth(t, copied, n+1); got != n+1 {
				t.Errorf("%d updates survived; want %d", got, n+1)
			}
		}
	}
}

// The end of the journal may be torn at any byte. What is left is the first updates, each as
// a whole, for a reader as for the next daemon.
func TestATornJournalLosesWholeUpdatesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	acceptLine(t, l, 0)
	whole(t, l.Reader)
	early := copyOf(t, path) // its index has the first update
	for n := range 4 {
		acceptLine(t, l, n+1)
	}
	text, err := os.ReadFile(segment(path))
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(segment(early))
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for cut := int(first.Size()); cut <= len(text); cut += max(1, min(97, len(text)-cut)) {
		torn := copyOf(t, early)
		write(t, segment(torn), text[:cut])
		got := checkBoth(t, torn, 1)
		if got < last {
			t.Errorf("a journal of %d bytes has %d updates; a shorter one had %d", cut, got, last)
		}
		last = got
	}
	if last != 5 {
		t.Errorf("a whole journal has %d updates; want 5", last)
	}
}

// The index is derived: without it, with one of before, of another version, or with one that
// can't be read, readers and the next daemon answer the same.
func TestNothingIsLostWithTheIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	for n := range 3 {
		acceptLine(t, l, n)
	}
	whole(t, l.Reader)
	before := copyOf(t, path)
	for n := range 3 {
		acceptLine(t, l, n+3)
	}
	want := books(t, l.Reader)
	for what, change := range map[string]func(index string){
		"as it is": func(string) {},
		"deleted":  func(index string) { removeAll(t, index, "", "-wal", "-shm") },
		"of before": func(index string) {
			for _, end := range []string{"", "-wal", "-shm"} {
				data, err := os.ReadFile(indexOf(before) + end)
				if err != nil {
					t.Fatal(err)
				}
				write(t, index+end, data)
			}
		},
		"without its other files":           func(index string) { removeAll(t, index, "-wal", "-shm") },
		"with a part of its other files":    func(index string) { removeAll(t, index, "-shm") },
		"of no database":                    func(index string) { write(t, index, []byte("precious text, and no database at all")) },
		"empty":                             func(index string) { removeAll(t, index, "-wal", "-shm"); write(t, index, nil) },
		"of a place that a purge has moved": func(index string) { run(t, index, "UPDATE mark SET offset = offset + 1") },
		"of another version": func(index string) {
			removeAll(t, index, "", "-wal", "-shm")
			run(t, index, "CREATE TABLE tasks (cake TEXT); PRAGMA user_version = 1")
		},
	} {
		t.Run(what, func(t *testing.T) {
			copied := copyOf(t, path)
			change(indexOf(copied))
			files := names(t, filepath.Dir(copied))
			r, err := ledger.OpenReader(copied)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, books(t, r)); diff != "" {
				t.Errorf("a reader (-want +got):\n%s", diff)
			}
			if err := r.Verify(t.Context()); err != nil {
				t.Errorf("Verify() = %v", err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(files, names(t, filepath.Dir(copied))); diff != "" {
				t.Errorf("a reader changed files (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(want, books(t, openAt(t, copied).Reader)); diff != "" {
				t.Errorf("the next daemon (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingAcceptedIsLostWhenTheWriterIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	writer := play(t, "writer", path)
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	promised := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if promised, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		switch promised {
		case 50:
			r, err := ledger.OpenReader(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := whole(t, r); got < promised {
				t.Errorf("a reader beside the writer finds %d tasks; want the %d that were promised", got, promised)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		case 100: // then it is killed in the middle of something
			if err := writer.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Wait(); err == nil || promised < 100 {
		t.Fatalf("the writer ended by itself after %d tasks", promised)
	}
	checkBoth(t, path, promised)
}

// play makes the test binary the process that has this part.
func play(t *testing.T, part, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEDGER_TEST_PART="+part, "LEDGER_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// checkBoth looks for at least so many tasks in a ledger that nobody closed, as a reader and
// as the next daemon, and returns how many they find.
func checkBoth(t *testing.T, path string, promised int) int {
	t.Helper()
	r, err := ledger.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	read := whole(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if next := whole(t, l.Reader); next != read || next < promised {
		t.Errorf("a reader finds %d tasks, and the next daemon %d; want the %d that were promised", read, next, promised)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return read
}

func indexOf(path string) string { return filepath.Join(filepath.Dir(path), "index.db") }

func segment(path string) string { return filepath.Join(ledger.Dir(path), "00000001.jsonl") }

// copyOf copies a ledger as it is.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "ledger.db")
}

func removeAll(t *testing.T, path string, ends ...string) {
	t.Helper()
	for _, end := range ends {
		if err := os.Remove(path + end); err != nil {
			t.Fatal(err)
		}
	}
}

// names returns the files below a directory with their sizes.
func names(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			found[path] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// acceptLine adds a task with its event and moves the file's offset by one.
func acceptLine(t *testing.T, l *ledger.Ledger, n int) {
	t.Helper()
	update(t, l, func(tx *ledger.Tx) error {
		tx.SetFile(ledger.File{Path: "tasks/a.jsonl", Offset: int64(n + 1)})
		return accept(tx, newTask(n), nil)
	})
}

// whole returns how many lines a ledger has accepted, and fails the test when one of them is
// there in part.
func whole(t *testing.T, r *ledger.Reader) int {
	t.Helper()
	tasks, err := r.Tasks(t.Context(), ledger.Filter{})
	events, listed := r.Events(t.Context(), "", 0, 1_000_000)
	files, read := r.Files(t.Context())
	if err != nil || listed != nil || read != nil {
		t.Fatal(err, listed, read)
	}
	offset := 0
	if len(files) == 1 {
		offset = int(files[0].Offset)
	}
	if len(tasks) != len(events) || len(tasks) != offset {
		t.Errorf("%d tasks, %d events, offset %d; want the same of each", len(tasks), len(events), offset)
	}
	return len(tasks)
}
