package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/journal"
)

func TestAnEventIsReadAsItWasAppended(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	group := newGroup(j, 12)
	group[3].Kind, group[3].Task = `odd "kind" \`, "täsk\n\x01"
	if _, err := j.Append(group); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	i := 0
	_, err := journal.Replay(dir, journal.Position{}, func(e *journal.Event) error {
		if diff := cmp.Diff(group[i], *e, cmp.Transformer("none", func(b []journal.Body) []journal.Body { return slices.Clone(b[:len(b):len(b)]) })); diff != "" && (len(e.Bodies) > 0 || len(group[i].Bodies) > 0) {
			t.Errorf("event %d (-appended +read):\n%s", e.N, diff)
		}
		alone, err := journal.ReadEvent(dir, e.Place)
		if err != nil || alone.N != e.N || !bytes.Equal(alone.Data, e.Data) || alone.Kind != e.Kind || alone.Task != e.Task {
			t.Errorf("ReadEvent(%+v) = %+v, %v; want event %d", e.Place, alone, err, e.N)
		}
		i++
		return nil
	})
	if err != nil || i != len(group) {
		t.Errorf("Replay: %d events, %v; want %d", i, err, len(group))
	}
	stale := group[4].Place // a line of another event is there
	stale.N = 7
	if e, err := journal.ReadEvent(dir, stale); err != nil || e.N != 7 || e.Place != group[6].Place {
		t.Errorf("ReadEvent of a stale place = %+v, %v; want event 7", e, err)
	}
	stale.N = 99
	if _, err := journal.ReadEvent(dir, stale); err == nil {
		t.Error("ReadEvent of an event that is not there = nil; want an error")
	}
	body, err := journal.ReadBody(dir, group[2].Place, "result")
	if err != nil || string(body) != ` [1, "two"] ` {
		t.Errorf("ReadBody = %q, %v", body, err)
	}
	if _, err := journal.ReadBody(dir, group[2].Place, "other"); err == nil {
		t.Error("ReadBody of a body that is not there = nil; want an error")
	}
}

func TestEveryLineIsAnObjectOfJSON(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 2000}, 1, 5, 2, 9, 1)
	paths, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	events := 0
	for _, path := range paths {
		text := read(t, path)
		if !bytes.HasSuffix(text, []byte("\n")) {
			t.Errorf("%s does not end with a line", path)
		}
		for line := range strings.Lines(string(text)) {
			var object struct {
				N    int
				At   string
				Kind string
				Task string
			}
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if object.N > 0 {
				events++
			}
		}
	}
	if events != 18 || len(paths) < 2 {
		t.Errorf("%d events in %d segments; want 18 in several", events, len(paths))
	}
}

func TestTheNextJournalGoesOnWhereTheLastOneEnded(t *testing.T) {
	for _, size := range []int64{1, 900, 0} {
		dir := filepath.Join(t.TempDir(), "journal")
		for range 5 {
			j := open(t, dir, journal.Options{SegmentSize: size})
			appendGroup(t, j, 2)
			appendGroup(t, j, 1)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		wantEvents(t, dir, 15)
		if report, err := journal.Verify(context.Background(), dir); err != nil || report.Events != 15 || report.Groups != 10 || report.NoHead {
			t.Errorf("Verify = %+v, %v; want 15 events in 10 groups", report, err)
		}
	}
}

func TestANewJournalBeginsBehindANumber(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	for range 3 {
		j := open(t, dir, journal.Options{SegmentSize: 900, After: 300})
		appendGroup(t, j, 4)
		closeJournal(t, j)
	}
	numbers, end := replay(t, dir, journal.Position{})
	if len(numbers) != 12 || numbers[0] != 301 || end.N != 312 {
		t.Errorf("the journal has the events %v and ends with %d; want 301 to 312", numbers, end.N)
	}
	if report, err := journal.Verify(t.Context(), dir, end); err != nil || report.Events != 12 {
		t.Errorf("Verify = %+v, %v; want 12 events", report, err)
	}
	first := segment(dir, 1)
	write(t, first, bytes.Replace(read(t, first), []byte(`"n":300`), []byte(`"n":299`), 1))
	if _, err := journal.Verify(t.Context(), dir); err == nil {
		t.Error("Verify(the number in the first header was changed) = nil; want damage")
	}
}

func TestAnEmptyJournalThatWasClosedCanBeOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	for range 2 {
		closeJournal(t, open(t, dir, journal.Options{After: 300}))
	}
	wantEvents(t, dir, 0)
}

func TestReplayGoesOnFromEachPosition(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{SegmentSize: 1500})
	ends := []journal.Position{{}}
	for n := range 12 {
		ends = append(ends, appendGroup(t, j, 1+n%3))
	}
	for _, from := range ends {
		numbers, end := replay(t, dir, from)
		if end != j.Head() || len(numbers) != int(j.Head().N-from.N) || len(numbers) > 0 && numbers[0] != from.N+1 {
			t.Errorf("replay from %d has %v up to %+v; want the events up to %+v", from.N, numbers, end, j.Head())
		}
	}
	closeJournal(t, j)
	for _, from := range ends {
		next := open(t, dir, journal.Options{From: from})
		if next.Head() != j.Head() {
			t.Errorf("Open from %d ends with %+v; want %+v", from.N, next.Head(), j.Head())
		}
		closeJournal(t, next)
	}
	moved := ends[3]
	moved.Offset++
	if _, err := journal.Replay(dir, moved, nil); !errors.Is(err, journal.ErrNoPosition) {
		t.Errorf("Replay from a place inside a group = %v; want ErrNoPosition", err)
	}
	moved = ends[3]
	moved.Segment = 99
	if _, err := journal.Open(dir, journal.Options{From: moved}); !errors.Is(err, journal.ErrNoPosition) {
		t.Errorf("Open from a segment that is not there = %v; want ErrNoPosition", err)
	}
}

func TestAnEventThatALineCannotHoldIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	appendGroup(t, j, 1)
	for what, change := range map[string]func(*journal.Event){
		"another number":        func(e *journal.Event) { e.N++ },
		"a line break in data":  func(e *journal.Event) { e.Data = []byte("{\n}") },
		"no data":               func(e *journal.Event) { e.Data = []byte(" ") },
		"data that goes on":     func(e *journal.Event) { e.Data = []byte(`1,"kind":2`) },
		"data that ends twice":  func(e *journal.Event) { e.Data = []byte(`{}}`) },
		"data that never ends":  func(e *journal.Event) { e.Data = []byte(`{"a":"}`) },
		"a body without a text": func(e *journal.Event) { e.Bodies = []journal.Body{{Name: "x"}} },
		"a kind that is no text": func(e *journal.Event) {
			e.Kind = "\xff"
		},
		"a year of five digits": func(e *journal.Event) { e.At = e.At.AddDate(9999, 0, 0) },
	} {
		group := []journal.Event{newEvent(2)}
		change(&group[0])
		if _, err := j.Append(group); err == nil {
			t.Errorf("Append of %s = nil; want an error", what)
		}
	}
	appendGroup(t, j, 1) // nothing was written
	closeJournal(t, j)
	wantEvents(t, dir, 2)
}

func TestOneProcessWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{})
	if _, err := journal.Open(dir, journal.Options{}); !errors.Is(err, journal.ErrBusy) {
		t.Errorf("Open beside the writer = %v; want ErrBusy", err)
	}
	closeJournal(t, j)
	closeJournal(t, open(t, dir, journal.Options{}))
}

func TestReadersReadBesideTheWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{SegmentSize: 20_000})
	appendGroup(t, j, 1)
	const last = 3000
	done := make(chan error)
	read := func() (err error) {
		var at journal.Position
		for at.N < last && err == nil {
			next := at.N + 1
			at, err = journal.Replay(dir, at, func(e *journal.Event) error {
				if e.N != next {
					return fmt.Errorf("event %d follows event %d", e.N, next-1)
				}
				next++
				return nil
			})
			if err == nil {
				_, err = journal.Verify(context.Background(), dir, at)
			}
		}
		return err
	}
	waitFor(func() { done <- read() }, func() {
		for j.Head().N < last {
			appendGroup(t, j, min(7, int(last-j.Head().N)))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	closeJournal(t, j)
}

func TestAHeadThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{SegmentSize: 1})
	appendGroup(t, j, 1)
	before := read(t, filepath.Join(dir, "head"))
	failOnce(t, "rename journal file", nil)
	appendGroup(t, j, 1)
	if !bytes.Equal(read(t, filepath.Join(dir, "head")), before) {
		t.Error("the head was written; want it to fail")
	}
	closeJournal(t, j)
	if err := os.Truncate(segment(dir, 2), 0); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Open(dir, journal.Options{})
	wantDamage(t, "a segment that was emptied", err, filepath.Base(segment(dir, 1)), 2)
}

func eventOf(t *testing.T, line []byte) uint64 {
	t.Helper()
	var object struct{ N uint64 }
	if err := json.Unmarshal(line, &object); err != nil {
		t.Fatal(err)
	}
	return object.N
}
