package ledgerimport_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mailboxd/internal/ledgerimport"
)

// waysToCommit are by the redo log, and by a transaction of SQLite.
var waysToCommit = []struct {
	log string // the file that an update is durable in
	ask func(*ledgerimport.Tx) error
}{
	{"-redo1", func(*ledgerimport.Tx) error { return nil }},
	{"-wal", func(tx *ledgerimport.Tx) error {
		_, _, err := tx.Conversation(1)
		return err
	}},
}

// A copy of the files, taken the moment Update returned, is what a power cut
// leaves: all that was synced, and no closing.
func TestWhatUpdateReturnedForSurvivesAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	for n := range 20 {
		acceptLine(t, l, n, waysToCommit[n/3%2].ask) // and between them what was folded meanwhile
		for range 2 {                                // what was taken up is not taken up again
			copied := copyOf(t, path, "", 0)
			if got := whole(t, openAt(t, copied).Reader); got != n+1 {
				t.Errorf("%d updates survived; want %d", got, n+1)
			}
		}
	}
}

// Row 43: the end of the log may be torn at any byte. What is read again is
// always some whole updates, the first ones, by our tools as by the next daemon.
func TestATornLogLosesWholeUpdatesOnly(t *testing.T) {
	for _, way := range waysToCommit {
		t.Run(way.log, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := openAt(t, path)
			for n := range 5 {
				acceptLine(t, l, n, way.ask)
			}
			whole := copyOf(t, path, "", 0)
			info, err := os.Stat(whole + way.log)
			if err != nil {
				t.Fatal(err)
			}
			last, step := 0, info.Size()/30
			for cut := info.Size() % step; cut <= info.Size(); cut += step { // the last one cuts nothing
				got := checkBoth(t, copyOf(t, whole, way.log, cut), 0)
				if got < last {
					t.Errorf("a log of %d bytes has %d updates; a shorter one had %d", cut, got, last)
				}
				last = got
			}
			if last != 5 {
				t.Errorf("a whole log has %d updates; want 5", last)
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
		if promised == 100 { // then it is killed in the middle of something
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

// A disk that is full fails what is tried, spoils nothing, and once there is
// room again the ledger goes on by itself.
func TestAFullDiskPasses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	out, err := play(t, "full disk", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	written, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	checkBoth(t, path, written)
}

// play makes the test binary the process that has this part.
func play(t *testing.T, part, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEDGER_TEST_PART="+part, "LEDGER_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// checkBoth looks for at least so many tasks in a ledger that nobody closed,
// as our tools do and as the next daemon does, and returns how many they find.
func checkBoth(t *testing.T, path string, promised int) int {
	t.Helper()
	r, err := ledgerimport.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	ours := whole(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if next := whole(t, openAt(t, path).Reader); next != ours || next < promised {
		t.Errorf("a reader finds %d tasks, and the next daemon %d; want the %d that were promised", ours, next, promised)
	}
	return ours
}

// copyOf copies a ledger, of the log with that end only so many bytes.
func copyOf(t *testing.T, path, torn string, logged int64) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "ledger.db")
	for _, end := range []string{"", "-wal", "-redo1", "-redo2"} {
		data, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if end != "" && end == torn {
			data = data[:logged]
		}
		write(t, to+end, data)
	}
	return to
}

// acceptLine adds a task with its event and moves the file's offset by one.
func acceptLine(t *testing.T, l *ledgerimport.Ledger, n int, ask func(*ledgerimport.Tx) error) {
	t.Helper()
	update(t, l, func(tx *ledgerimport.Tx) error {
		if err := accept(tx, newTask(n), nil); err != nil {
			return err
		}
		tx.SetFile(ledgerimport.File{Path: "tasks/a.jsonl", Offset: int64(n + 1)})
		return ask(tx)
	})
}

// whole returns how many lines a ledger has accepted, and fails the test when
// one of them is there in part.
func whole(t *testing.T, r *ledgerimport.Reader) int {
	t.Helper()
	tasks, err := r.Tasks(t.Context(), ledgerimport.Filter{})
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
