package ledger_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mailboxd/internal/stores/ledger"
)

// A copy of the files, taken the moment Update returned, is what a power cut
// leaves: all that was synced, and no closing.
func TestWhatUpdateReturnedForSurvivesAPowerCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	for n := range 20 {
		acceptLine(t, l, n)
		for range 2 { // of which one is read
			copied := copyOf(t, path, "", 0)
			if got := whole(t, openAt(t, copied).Reader); got != n+1 {
				t.Errorf("%d updates survived; want %d", got, n+1)
			}
		}
	}
}

// The end of the log may be torn at any byte. What misses a commit that was
// acknowledged is never read as if it were all.
func TestATornLogIsWholeOrSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := openAt(t, path)
	for n := range 5 {
		acceptLine(t, l, n)
	}
	before := copyOf(t, path, "", 0)
	info, err := os.Stat(before + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	acceptLine(t, l, 5)
	whole := copyOf(t, path, "", 0)
	end, err := os.Stat(whole + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	step := end.Size() / 40
	for cut := end.Size() % step; cut <= end.Size(); cut += step { // the last one cuts nothing
		copied := copyOf(t, whole, "-wal", cut)
		if cut == end.Size() {
			checkBoth(t, copied, 6)
			continue
		}
		if r, err := ledger.OpenReader(copied); err == nil {
			r.Close()
			t.Errorf("a log of %d of %d bytes is read as if it were whole", cut, end.Size())
		}
		next, opened, err := ledger.Open(copied)
		if err != nil || opened.Aside == "" {
			t.Errorf("Open(with a log of %d of %d bytes) = %+v, %v; want it aside", cut, end.Size(), opened, err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		if cut < info.Size() {
			continue
		}
		unacknowledged := copyOf(t, whole, "-wal", cut) // the power went before the commit was durable
		data, err := os.ReadFile(before + "-last")
		if err != nil {
			t.Fatal(err)
		}
		write(t, unacknowledged+"-last", data)
		checkBoth(t, unacknowledged, 5)
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

// checkBoth looks for at least so many tasks in a ledger that was not closed,
// as our tools do and as the next daemon does, and returns how many they find.
func checkBoth(t *testing.T, path string, promised int) int {
	t.Helper()
	r, err := ledger.OpenReader(path)
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
	for _, end := range []string{"", "-wal", "-last"} {
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
func acceptLine(t *testing.T, l *ledger.Ledger, n int) {
	t.Helper()
	update(t, l, func(tx *ledger.Tx) error {
		if err := accept(tx, newTask(n), nil); err != nil {
			return err
		}
		return tx.SetFile(ledger.File{Path: "tasks/a.jsonl", Offset: int64(n + 1)})
	})
}

// whole returns how many lines a ledger has accepted, and fails the test when
// one of them is there in part.
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
