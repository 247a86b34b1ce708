package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"mailboxd/internal/fault"
	"mailboxd/internal/journal"
)

// failures are the ways in which an append to an existing segment fails: what is in the
// file then, and whether the disk lets it be cut.
var failures = []struct {
	name, step string
	left       func(group []byte) []byte
	uncut      bool
}{
	{"no write", "write journal segment", func(g []byte) []byte { return nil }, false},
	{"half a write", "write journal segment", func(g []byte) []byte { return g[:len(g)/2] }, false},
	{"no sync", "sync journal segment", nil, false},
	{"half a write and no cut", "write journal segment", func(g []byte) []byte { return g[:len(g)/2] }, true},
	{"zeros and no cut", "write journal segment", func(g []byte) []byte { return make([]byte, len(g)) }, true},
	{"a hole and no cut", "write journal segment", func(g []byte) []byte { return append(make([]byte, 50), g[50:]...) }, true},
	{"no sync and no cut", "sync journal segment", nil, true},
}

func TestAFailedGroupIsAppendedToANewSegment(t *testing.T) {
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			dir, j, group := failAppend(t, f.step, f.left, f.uncut)
			other := newGroup(j, 1)
			if _, err := j.Append(other); !errors.Is(err, journal.ErrOtherGroup) {
				t.Errorf("Append of another group = %v; want ErrOtherGroup", err)
			}
			wantReaders(t, dir, 3, 5)
			at, err := j.Append(group)
			if err != nil || at.Segment != 2 || at.N != 5 {
				t.Fatalf("Append of the same group = %+v, %v; want it in segment 2", at, err)
			}
			wantReaders(t, dir, 5, 5)
			wantOpens(t, dir, 5)
			appendGroup(t, j, 2)
			closeJournal(t, j)
			wantEvents(t, dir, 7)
			wantOpens(t, dir, 7)
			report, err := journal.Verify(context.Background(), dir)
			if err != nil || f.uncut != (report.Skipped > 0) {
				t.Errorf("Verify = %+v, %v; want skipped bytes: %v", report, err, f.uncut)
			}
			if !f.uncut {
				return
			}
			if err := journal.ReplaySegment(dir, 1, func(*journal.Event) error { return nil }); err != nil {
				t.Error(err)
			}
			next := open(t, dir, journal.Options{})
			if _, err := next.Purge(1, func(*journal.Event) bool { return true }); err != nil {
				t.Error(err)
			}
			closeJournal(t, next)
			wantEvents(t, dir, 7)
		})
	}
}

// The process dies after the failure, and the next one takes what it finds.
func TestAfterAFailedGroupAKillLosesItOrNot(t *testing.T) {
	for _, f := range failures {
		dir, j, _ := failAppend(t, f.step, f.left, f.uncut)
		copied := copyDir(t, dir)
		closeJournal(t, j)
		fault.FailReads(func(string) error { return nil })
		next := open(t, copied, journal.Options{})
		if n := next.Head().N; n != 3 && n != 5 {
			t.Errorf("%s: the journal ends with %d; want 3 or 5", f.name, n)
		}
		appendGroup(t, next, 1)
		closeJournal(t, next)
		if report, err := journal.Verify(context.Background(), copied); err != nil || report.Torn+report.Skipped > 0 {
			t.Errorf("%s: Verify = %+v, %v", f.name, report, err)
		}
	}
}

// The retried group is torn as well, and the failed one is whole or not.
func TestATornRetryIsCut(t *testing.T) {
	for _, f := range failures {
		dir, j, group := failAppend(t, f.step, f.left, f.uncut)
		head := read(t, filepath.Join(dir, "head"))
		if _, err := j.Append(group); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
		whole := read(t, segment(dir, 2))
		write(t, filepath.Join(dir, "head"), head)
		for size := 0; size < len(whole); size += 31 {
			hole := slices.Clone(whole)
			clear(hole[bytes.IndexByte(whole, '\n')+1:][:1+size/2]) // the header and the end of the group are there
			for _, text := range [][]byte{whole[:size], append(make([]byte, size+1), whole[size+1:]...), hole} {
				write(t, segment(dir, 2), text)
				copied := copyDir(t, dir)
				next, err := journal.Open(copied, journal.Options{})
				if err != nil {
					t.Fatalf("%s, torn at %d: %v", f.name, size, err)
				}
				if n := next.Head().N; n != 3 && n != 5 {
					t.Errorf("%s, torn at %d: the journal ends with %d; want 3 or 5", f.name, size, n)
				}
				appendGroup(t, next, 1)
				closeJournal(t, next)
				if _, err := journal.Verify(context.Background(), copied); err != nil {
					t.Fatalf("%s, torn at %d: %v", f.name, size, err)
				}
			}
		}
	}
}

func TestAnotherGroupThanTheFailedOneIsDamage(t *testing.T) {
	dir, j, group := failAppend(t, "sync journal segment", nil, true)
	closeJournal(t, j)
	copied := copyDir(t, dir)
	if err := os.Truncate(segment(copied, 1), j.Head().Offset); err != nil {
		t.Fatal(err)
	}
	elsewhere := open(t, copied, journal.Options{SegmentSize: 1})
	group[0].Kind = "other"
	if _, err := elsewhere.Append(group); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, elsewhere)
	text := bytes.Replace(read(t, segment(copied, 2)), []byte("}}\n"), []byte("},\"retry\":true}\n"), 1)
	write(t, segment(dir, 2), text)
	_, err := journal.Verify(context.Background(), dir)
	wantDamage(t, "Verify", err, filepath.Base(segment(dir, 2)), 4)
}

func TestAGroupTwiceIsDamageWithoutARetry(t *testing.T) {
	dir, j, group := failAppend(t, "sync journal segment", nil, true)
	if _, err := j.Append(group); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	if _, err := journal.Verify(context.Background(), dir); err != nil {
		t.Error(err)
	}
	write(t, segment(dir, 2), bytes.Replace(read(t, segment(dir, 2)), []byte(`,"retry":true`), nil, 1))
	_, err := journal.Verify(context.Background(), dir)
	wantDamage(t, "Verify", err, filepath.Base(segment(dir, 2)), 4)
}

func TestANewSegmentThatFailsIsTriedAgain(t *testing.T) {
	for _, step := range []string{"write journal segment", "sync journal segment", "sync journal directory"} {
		dir := filepath.Join(t.TempDir(), "journal")
		j := open(t, dir, journal.Options{SegmentSize: 1})
		appendGroup(t, j, 3)
		group := newGroup(j, 2)
		for range 3 {
			failOnce(t, step, nil)
			if _, err := j.Append(group); !errors.Is(err, syscall.EIO) {
				t.Fatalf("Append = %v; want EIO", err)
			}
			wantReaders(t, dir, 3, 5)
		}
		if _, err := j.Append(group); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
		wantEvents(t, dir, 5)
	}
}

// Open fails before it changes what cannot be made durable, and can be called again.
func TestOpenFailsIfItCannotSync(t *testing.T) {
	for _, step := range []string{"write journal segment", "sync journal segment", "sync journal directory"} {
		dir := filepath.Join(t.TempDir(), "journal")
		j := open(t, dir, journal.Options{})
		appendGroup(t, j, 1)
		appendGroup(t, j, 2)
		copied := copyDir(t, dir)
		closeJournal(t, j)
		failOnce(t, step, nil)
		if _, err := journal.Open(copied, journal.Options{}); !errors.Is(err, syscall.EIO) {
			t.Errorf("Open with a failed %q = %v; want EIO", step, err)
		}
		wantOpens(t, copied, 3)
	}
}

// The head file takes room that a full disk does not have. Open goes on without it, and the
// next Append writes it.
func TestOpenGoesOnWithoutRoomForTheHead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	appendGroup(t, j, 1)
	appendGroup(t, j, 1)
	copied := copyDir(t, dir)
	closeJournal(t, j)
	failOnce(t, "rename journal file", nil)
	j = open(t, copied, journal.Options{})
	appendGroup(t, j, 1)
	if report, err := journal.Verify(context.Background(), copied); err != nil || report.NoHead {
		t.Errorf("Verify = %+v, %v; want a head file", report, err)
	}
	closeJournal(t, j)
}

// A segment of a later format is nothing that is damaged.
func TestANewerJournalIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	appendGroup(t, j, 1)
	closeJournal(t, j)
	path := filepath.Join(dir, "00000001.jsonl")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append([]byte(`{"version":2,`), text[1:]...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("Open = %v; want ErrNewer", err)
	}
}

// A full disk fails what does not fit, and the journal goes on when there is room.
func TestAFullDiskPasses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	cmd := play(t, "full disk", dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	if err := json.Unmarshal(out, &last); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, dir, last)
	wantOpens(t, dir, last)
}

// failAppend makes a journal of 3 events and has the append of 2 more fail.
func failAppend(t *testing.T, step string, left func([]byte) []byte, uncut bool) (dir string, j *journal.Journal, group []journal.Event) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "journal")
	j = open(t, dir, journal.Options{})
	appendGroup(t, j, 1)
	appendGroup(t, j, 2)
	group = newGroup(j, 2)
	var text []byte
	if left != nil {
		text = left(textOf(t, dir, group))
	}
	failed := false
	t.Cleanup(fault.FailReads(func(name string) error {
		switch {
		case uncut && j.Head().N == 3 && name == "cut journal segment":
			return syscall.EIO
		case failed || name != step:
			return nil
		}
		failed = true
		file, err := os.OpenFile(segment(dir, 1), os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = file.Write(text)
		}
		if err = errors.Join(err, file.Close()); err != nil {
			t.Error(err)
		}
		return syscall.EIO
	}))
	if _, err := j.Append(group); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Append = %v; want EIO", err)
	}
	return dir, j, group
}

// textOf returns what an append of a group writes to a copy of a journal.
func textOf(t *testing.T, dir string, group []journal.Event) []byte {
	t.Helper()
	copied := copyDir(t, dir)
	j := open(t, copied, journal.Options{})
	before := j.Head().Offset
	if _, err := j.Append(append([]journal.Event(nil), group...)); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	return read(t, segment(copied, 1))[before:]
}

// wantReaders checks that a reader finds one of these ends.
func wantReaders(t *testing.T, dir string, least, most uint64) {
	t.Helper()
	if _, end := replay(t, dir, journal.Position{}); end.N != least && end.N != most {
		t.Errorf("a reader finds %d events; want %d or %d", end.N, least, most)
	}
}

// wantOpens checks that a copy of a journal can be opened, and its end.
func wantOpens(t *testing.T, dir string, last uint64) {
	t.Helper()
	copied := copyDir(t, dir)
	closeJournal(t, open(t, copied, journal.Options{}))
	wantEvents(t, copied, last)
}
