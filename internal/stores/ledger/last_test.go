package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mailboxd/envelope"
)

// files are those of one ledger, by the ends of their names; nil: there is none.
type files map[string][]byte

// past is what the files of a ledger were, at one moment after another.
type past struct {
	older   files // after two commits, of which the main file has all
	killed  files // after six: the main file has four, and the log two
	stopped files // after six, and closed in order
}

// aPast makes a ledger with one task for each commit.
func aPast(t *testing.T) (p past) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 6; n++ {
		if err := addNamed(l, envelope.ID(fmt.Sprint("t", n))); err != nil {
			t.Fatal(err)
		}
		if n == 2 {
			p.older = filesOf(t, path) // with its log
		}
		if n%2 == 1 {
			continue
		}
		if n == 6 {
			p.killed = filesOf(t, path)
			break
		}
		emptied := false
		l.betweenGroups(func() { emptied, err = l.emptyLog() })
		if err != nil || !emptied {
			t.Fatalf("emptyLog() = %t, %v", emptied, err)
		}
		if n == 2 {
			p.older[""] = filesOf(t, path)[""]
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.stopped = filesOf(t, path)
	return p
}

func writeFiles(t *testing.T, path string, all files) {
	t.Helper()
	for end, data := range all {
		if data == nil {
			continue
		}
		if err := os.WriteFile(path+end, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func filesOf(t *testing.T, path string) files {
	t.Helper()
	found := files{}
	for _, end := range besides {
		if data, err := os.ReadFile(path + end); err == nil {
			found[end] = data
		} else if !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return found
}

// damages are what may become of one file.
func damages(whole, older []byte) map[string][]byte {
	flipped := func(at int) []byte {
		data := bytes.Clone(whole)
		data[at] ^= 0x10
		return data
	}
	n := len(whole)
	all := map[string][]byte{
		"flipped in the first page": flipped(min(n-1, 2000)), "flipped in the last page": flipped(max(0, n-2000)),
		"deleted": nil, "empty": {}, "cut in the middle": whole[:n/2], "cut by one byte": whole[:n-1],
		"flipped in the first byte": flipped(0), "flipped in the middle": flipped(n / 2), "flipped in the last byte": flipped(n - 1),
	}
	if older != nil {
		all["an older copy"] = older
	}
	return all
}

// Whatever becomes of one file, or of two: a ledger that misses something is never taken for a
// whole one.
func TestADamagedLedgerIsWholeOrSaysSo(t *testing.T) {
	p := aPast(t)
	for state, is := range map[string]files{"killed": p.killed, "stopped": p.stopped} {
		for _, end := range []string{"", "-wal", "-shm", lastEnd} {
			if is[end] == nil && p.older[end] == nil {
				continue
			}
			choices := map[string][]byte{"an older copy": p.older[end], "garbage": []byte("garbage")}
			if is[end] != nil { // a stopped one has no log
				choices = damages(is[end], p.older[end])
			}
			for what, data := range choices {
				t.Run(state+" "+end+" "+what, func(t *testing.T) {
					damaged := maps.Clone(is)
					damaged[end] = data
					wantWholeOrAside(t, damaged, state, end, what)
				})
			}
		}
	}
}

// SQLite has no sums of its pages. So a byte that changed within a row may change that row, but it
// takes no row away in silence.
func TestAFlippedByteOfAnyPageTakesNoTaskAwayInSilence(t *testing.T) {
	p := aPast(t)
	for state, is := range map[string]files{"killed": p.killed, "stopped": p.stopped} {
		said, pages := 0, len(is[""])/4096
		for page := range pages {
			for _, at := range [...]int{3, 2048} { // of its head, and of its rows
				damaged := maps.Clone(is)
				damaged[""] = bytes.Clone(is[""])
				damaged[""][page*4096+at] ^= 0x10
				if opened := openDamaged(t, damaged); opened.Lost() {
					said++
				}
			}
		}
		t.Logf("%s: %d of %d flipped bytes made the ledger unreadable", state, said, 2*pages)
		if said == 0 {
			t.Errorf("%s: no flipped byte is found", state)
		}
	}
}

// openDamaged wants that a ledger with these files has all six tasks, or says that it is lost.
func openDamaged(t *testing.T, damaged files) Opened {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	writeFiles(t, path, damaged)
	l, opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n, err := l.Count(t.Context(), Filter{}); !opened.Lost() && err == nil && n != 6 {
		t.Errorf("%d of 6 tasks are there, and nothing was said", n)
	}
	return opened
}

func TestALedgerThatMissesTwoFilesSaysSo(t *testing.T) {
	p := aPast(t)
	for _, ends := range [][]string{
		{"-wal", "-shm"}, {"-wal", lastEnd}, {"-wal", "-shm", lastEnd}, {"", "-wal"}, {"", "-wal", "-shm"}, {"", lastEnd}, {"", "-shm"},
	} {
		damaged := maps.Clone(p.killed)
		for _, end := range ends {
			delete(damaged, end)
		}
		if whole := wantWholeOrAside(t, damaged, "killed", fmt.Sprint(ends), "deleted"); whole {
			t.Errorf("a ledger without %q is taken for a whole one", ends)
		}
	}
}

// wholeAnyway are the damages that lose nothing.
var wholeAnyway = map[string][]string{
	"killed":  {"-shm", "older" + lastEnd},
	"stopped": {"-shm", lastEnd, "older" + lastEnd},
}

// wantWholeOrAside opens a ledger with these files, as a reader and as a daemon.
func wantWholeOrAside(t *testing.T, damaged files, state, end, what string) (whole bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	writeFiles(t, path, damaged)
	if r, err := OpenReader(path); err == nil {
		n, err := r.Count(t.Context(), Filter{})
		if err == nil && n != 6 {
			t.Errorf("a reader finds %d of 6 tasks, and says nothing", n)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	l, opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	whole = !opened.Lost()
	t.Logf("%s, %s %s: whole %t, %v", state, end, what, whole, opened.Cause)
	if whole {
		wantTasks(t, l, "t1", "t2", "t3", "t4", "t5", "t6")
	}
	if what == "an older copy" {
		end = "older" + end
	}
	if must := slices.Contains(wholeAnyway[state], end); must && !whole {
		t.Errorf("Open() = %+v; want the ledger, which misses nothing", opened)
	}
	return whole
}

// A reader looks for the file -last first. A daemon may make the ledger right after that.
func TestALedgerThatWasJustMadeMissesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	_, reading := readLast(path)
	l, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := checkCommits(r.db, path, lastCommit{}, reading); err != nil {
		t.Errorf("checkCommits() = %v; want nil", err)
	}
}
