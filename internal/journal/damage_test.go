package journal_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mailboxd/internal/journal"
)

// A power cut can tear the last group at any byte. The groups before it are there.
func TestATornTailIsCutAtEachByteOfTheLastGroup(t *testing.T) {
	for _, segmentSize := range []int64{0, 1} { // the last group follows others, or is alone
		dir := filepath.Join(t.TempDir(), "journal")
		j := open(t, dir, journal.Options{SegmentSize: segmentSize})
		appendGroup(t, j, 1)
		before := appendGroup(t, j, 2)
		headBefore := read(t, filepath.Join(dir, "head"))
		after := appendGroup(t, j, 2)
		path, whole := segment(dir, after.Segment), read(t, segment(dir, after.Segment))
		closeJournal(t, j)
		write(t, filepath.Join(dir, "head"), headBefore)
		start := 0
		if before.Segment == after.Segment {
			start = int(before.Offset)
		}
		for size := start; size <= len(whole); size++ {
			want := before
			if size == len(whole) {
				want = after
			}
			zeroed := append(slices.Clone(whole[:size]), make([]byte, len(whole)-size)...) // blocks that were not written
			for _, text := range [][]byte{whole[:size], zeroed} {
				overwrite(t, path, text)
				if _, end := replay(t, dir, journal.Position{}); end != want {
					t.Fatalf("torn at %d of %d: a reader finds the end %+v; want %+v", size, len(whole), end, want)
				}
				if size%9 == 0 || size == len(whole) {
					wantCut(t, dir, want, segmentSize)
				}
			}
		}
	}
}

// wantCut checks that a copy of a journal ends somewhere and goes on there.
func wantCut(t *testing.T, dir string, want journal.Position, segmentSize int64) {
	t.Helper()
	dir = copyDir(t, dir)
	j := open(t, dir, journal.Options{SegmentSize: segmentSize})
	if j.Head() != want {
		t.Fatalf("Open finds the end %+v; want %+v", j.Head(), want)
	}
	appendGroup(t, j, 1)
	closeJournal(t, j)
	if report, err := journal.Verify(context.Background(), dir); err != nil || report.End.N != want.N+1 || report.Torn != 0 {
		t.Fatalf("Verify = %+v, %v; want %d events", report, err, want.N+1)
	}
}

// The head file has the end of a closed journal, so not even its last group can
// change.
func TestEachChangedByteIsFound(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 600}, 1, 2, 1)
	for _, name := range names(t, dir) {
		path := filepath.Join(dir, name)
		whole := read(t, path)
		for i := range whole {
			for _, with := range []byte{whole[i] ^ 1, whole[i] ^ 0x80, '\n', '"'} {
				if with == whole[i] {
					continue
				}
				changed := slices.Clone(whole)
				changed[i] = with
				overwrite(t, path, changed)
				if _, err := journal.Verify(context.Background(), dir); err == nil {
					t.Fatalf("%s: byte %d %q is now %q, and Verify = nil", name, i, whole[i], with)
				}
				if j, err := journal.Open(dir, journal.Options{}); err == nil {
					closeJournal(t, j)
					t.Fatalf("%s: byte %d %q is now %q, and Open = nil", name, i, whole[i], with)
				}
			}
		}
		overwrite(t, path, whole)
	}
	if report, err := journal.Verify(context.Background(), dir); err != nil || report.End.Segment != 2 {
		t.Errorf("Verify = %+v, %v; want two segments", report, err)
	}
}

// Without a head, a change in the last group looks like a torn tail. It never looks
// like another group, and no other group goes with it.
func TestAChangeInTheLastGroupLosesThatGroupAtMost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	appendGroup(t, j, 2)
	before := appendGroup(t, j, 1)
	appendGroup(t, j, 2)
	whole := read(t, segment(dir, 1))
	closeJournal(t, j)
	if err := os.Remove(filepath.Join(dir, "head")); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		changed := slices.Clone(whole)
		changed[i] ^= 4
		overwrite(t, segment(dir, 1), changed)
		report, err := journal.Verify(context.Background(), dir)
		if err == nil && (i < int(before.Offset) || report.End != before || report.Torn == 0) {
			t.Errorf("byte %d of %d is changed, and Verify = %+v, nil", i, len(whole), report)
		}
	}
}

func TestATailBehindACloseIsCut(t *testing.T) {
	dir := build(t, journal.Options{}, 2, 1)
	write(t, segment(dir, 1), append(read(t, segment(dir, 1)), make([]byte, 5000)...))
	j := open(t, dir, journal.Options{})
	appendGroup(t, j, 1)
	closeJournal(t, j)
	if report, err := journal.Verify(context.Background(), dir); err != nil || report.Torn != 0 || report.End.N != 4 {
		t.Errorf("Verify = %+v, %v; want 4 events and no tail", report, err)
	}
}

func TestADamagedHeaderOfSeveralGroupsIsNoTornTail(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 700}, 3, 1, 1)
	if err := os.Remove(filepath.Join(dir, "head")); err != nil {
		t.Fatal(err)
	}
	write(t, segment(dir, 2), bytes.Replace(read(t, segment(dir, 2)), []byte("segment"), []byte("segmend"), 1))
	_, err := journal.Verify(context.Background(), dir)
	wantDamage(t, "Verify", err, filepath.Base(segment(dir, 2)), 0)
	_, err = journal.Open(dir, journal.Options{})
	wantDamage(t, "Open", err, filepath.Base(segment(dir, 2)), 0)
}

func TestAnAddedSegmentIsFound(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 1}, 1, 1)
	second := read(t, segment(dir, 2))
	header, _, _ := bytes.Cut(second, []byte("\n"))
	write(t, segment(dir, 3), bytes.Replace(second, []byte(`"segment":2`), []byte(`"segment":3`), 1))
	write(t, segment(dir, 2), append(header, '\n'))
	_, err := journal.Verify(context.Background(), dir)
	wantDamage(t, "Verify", err, filepath.Base(segment(dir, 2)), 2)
}

func TestVerifyNamesWhatWasDone(t *testing.T) {
	options := journal.Options{SegmentSize: 1500}
	dir := build(t, options, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	second := bytes.SplitAfter(read(t, segment(dir, 2)), []byte("\n"))
	first := eventOf(t, second[1])
	var all []int // header, event, end of group, event, ...
	for i := range second {
		all = append(all, i)
	}
	lines := func(order ...int) (text []byte) {
		for _, i := range order {
			text = append(text, second[i]...)
		}
		return text
	}
	edited := bytes.Replace(lines(all...), []byte("task.started"), []byte("task.stopped"), 1)
	for what, c := range map[string]struct {
		text []byte
		file int
		n    uint64
	}{
		"an edited event":       {edited, 2, first},
		"a removed event":       {lines(slices.Delete(slices.Clone(all), 3, 4)...), 2, first + 1},
		"a removed group":       {lines(slices.Delete(slices.Clone(all), 3, 5)...), 2, first + 1},
		"swapped lines":         {lines(append([]int{0, 3, 2, 1}, all[4:]...)...), 2, first},
		"swapped groups":        {lines(append([]int{0, 3, 4, 1, 2}, all[5:]...)...), 2, first},
		"an event twice":        {lines(append([]int{0, 1, 1}, all[2:]...)...), 2, first + 1},
		"a group twice":         {lines(append([]int{0, 1, 2, 1, 2}, all[3:]...)...), 2, first + 1},
		"a removed header":      {lines(all[1:]...), 2, 0},
		"a missing end":         {lines(all[:len(all)-3]...), 2, 0},
		"a cut in the middle":   {append(lines(all[:3]...), lines(all[4:]...)[5:]...), 2, first + 1},
		"an older copy of it":   {lines(0, 1, 2), 2, first + 1},
		"an added line":         {append(lines(all...), "{}\n"...), 2, 0},
		"added bytes":           {append(lines(all...), 0), 2, 0},
		"another segment there": {read(t, segment(dir, 3)), 2, 0},
		"nothing":               {nil, 2, 0},
	} {
		damaged := copyDir(t, dir)
		write(t, segment(damaged, 2), c.text)
		_, err := journal.Verify(context.Background(), damaged)
		wantDamage(t, what, err, filepath.Base(segment(dir, c.file)), c.n)
		_, err = journal.Open(damaged, options)
		wantDamage(t, what+", Open", err, filepath.Base(segment(dir, c.file)), c.n)
	}
}

func TestARemovedSegmentIsFound(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 1}, 1, 1, 1, 1)
	for number := 1; number <= 4; number++ {
		damaged := copyDir(t, dir)
		if err := os.Remove(segment(damaged, number)); err != nil {
			t.Fatal(err)
		}
		file, n := number, uint64(0)
		if number == 4 {
			file, n = 3, 4 // the head has event 4
		}
		_, err := journal.Verify(context.Background(), damaged)
		wantDamage(t, "Verify", err, filepath.Base(segment(dir, file)), n)
		_, err = journal.Open(damaged, journal.Options{})
		wantDamage(t, "Open", err, filepath.Base(segment(dir, file)), n)
	}
}

func TestAnAnchorShowsWhatTheChainCannot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	appendGroup(t, j, 2)
	older := copyDir(t, dir)
	anchor := appendGroup(t, j, 2)
	appendGroup(t, j, 2)
	closeJournal(t, j)
	if _, err := journal.Verify(context.Background(), dir, anchor); err != nil {
		t.Error(err)
	}
	if _, err := journal.Verify(context.Background(), older); err != nil {
		t.Error(err)
	}
	_, err := journal.Verify(context.Background(), older, anchor)
	wantDamage(t, "an older copy", err, filepath.Base(segment(dir, 1)), anchor.N)
	anchor.Hash[0]++
	_, err = journal.Verify(context.Background(), dir, anchor)
	wantDamage(t, "another journal", err, filepath.Base(segment(dir, 1)), anchor.N)
	anchor.N--
	_, err = journal.Verify(context.Background(), dir, anchor)
	wantDamage(t, "an anchor inside a group", err, filepath.Base(segment(dir, 1)), anchor.N)
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
