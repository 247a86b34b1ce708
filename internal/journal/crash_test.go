package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/journal"
)

// crashes is how often the writer is killed.
const crashes = 50

func TestNothingAcknowledgedIsLostWhenTheWriterIsKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	acknowledged := uint64(0)
	for n := range crashes {
		writer := play(t, "writer", dir)
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		const most = 20
		kill := time.AfterFunc(10*time.Second, func() { _ = writer.Process.Kill() })
		got := 0
		for lines := bufio.NewScanner(out); lines.Scan(); got++ {
			last, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if acknowledged = last; got == n%most {
				_ = writer.Process.Kill()
			}
		}
		kill.Stop()
		if err := writer.Wait(); err == nil || got == 0 {
			t.Fatalf("the writer ended by itself after %d groups", got)
		}
		if _, end := replay(t, dir, journal.Position{}); end.N < acknowledged {
			t.Fatalf("the journal ends with %d, and %d was acknowledged", end.N, acknowledged)
		}
	}
	report, err := journal.Verify(context.Background(), dir)
	if err != nil || report.End.N < acknowledged {
		t.Errorf("Verify = %+v, %v; want %d events", report, err, acknowledged)
	}
	wantOpens(t, dir, report.End.N)
}

// appendForever appends groups and prints the last number of each.
func appendForever(dir string) error {
	j, err := journal.Open(dir, journal.Options{SegmentSize: 10_000})
	for err == nil {
		var at journal.Position
		if at, err = j.Append(newGroup(j, 1+int(j.Head().N%5))); err == nil {
			fmt.Println(at.N)
		}
	}
	return err
}

// appendOnAFullDisk appends until there is no room, then until there is, and prints
// the last number.
func appendOnAFullDisk(dir string) error {
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return err
	}
	var room unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 30_000, Max: room.Max}); err != nil {
		return err
	}
	group := newGroup(j, 10)
	for ; err == nil; group = newGroup(j, 10) {
		if _, err = j.Append(group); err != nil {
			break
		}
	}
	group[3].Data = []byte(`"` + strings.Repeat("x", 40_000) + `"`)
	if _, err := j.Append(group); err == nil {
		return fmt.Errorf("appended another group than the one that failed")
	}
	group = newGroup(j, 10)
	if _, err := j.Append(group); err != nil { // a new segment has room
		return err
	}
	group = newGroup(j, 10)
	group[3].Data = []byte(`"` + strings.Repeat("x", 40_000) + `"`)
	for range 3 { // neither the segment nor a new one has room
		if _, err := j.Append(group); err == nil {
			return fmt.Errorf("appended to a full disk")
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	at, err := j.Append(group)
	fmt.Println(at.N)
	return err
}

// play makes the test binary a process that plays a part.
func play(t *testing.T, part, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_PART="+part, "JOURNAL_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// waitFor runs a function beside another one, and waits for both.
func waitFor(beside, do func()) {
	var group sync.WaitGroup
	group.Go(beside)
	do()
	group.Wait()
}
