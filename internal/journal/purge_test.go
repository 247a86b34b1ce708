package journal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mailboxd/internal/fault"
	"mailboxd/internal/journal"
)

func old(e *journal.Event) bool { return e.N%2 == 1 }

func TestAPurgeRemovesBodiesAndTheChainHolds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, journal.Options{SegmentSize: 4000})
	var all []journal.Event
	for j.Head().Segment < 3 {
		group := newGroup(j, 3)
		if _, err := j.Append(group); err != nil {
			t.Fatal(err)
		}
		all = append(all, group...)
	}
	before := read(t, segment(dir, 1))
	saved, err := j.Purge(1, old)
	if after := read(t, segment(dir, 1)); err != nil || saved == 0 || int64(len(before)-len(after)) != saved {
		t.Errorf("Purge = %d, %v, and the segment has %d bytes less", saved, err, len(before)-len(after))
	}
	if bytes.Contains(read(t, segment(dir, 1)), []byte(`"task_id":"t3"`)) {
		t.Error("the body of event 3 is in the segment")
	}
	report, err := journal.Verify(context.Background(), dir)
	if err != nil || report.Purged == 0 || report.Bodies == 0 || report.End != j.Head() {
		t.Errorf("Verify = %+v, %v; want some bodies purged", report, err)
	}
	wantBodies(t, dir, all)
	if saved, err := j.Purge(1, old); saved != 0 || err != nil {
		t.Errorf("Purge of a purged segment = %d, %v; want 0", saved, err)
	}
	if saved, err := j.Purge(1, func(*journal.Event) bool { return true }); saved == 0 || err != nil {
		t.Errorf("Purge of the rest = %d, %v; want some bytes", saved, err)
	}
	for _, number := range []int{0, j.Head().Segment, 99} {
		if _, err := j.Purge(number, old); err == nil {
			t.Errorf("Purge of segment %d = nil; want an error", number)
		}
	}
	appendGroup(t, j, 1)
	closeJournal(t, j)
	wantEvents(t, dir, j.Head().N)
}

// wantBodies checks the bodies of the events of a journal of which segment 1 was purged.
func wantBodies(t *testing.T, dir string, all []journal.Event) {
	t.Helper()
	purged := map[uint64]bool{}
	places := map[uint64]journal.Place{}
	if err := journal.ReplaySegment(dir, 1, func(e *journal.Event) error {
		purged[e.N] = old(e)
		places[e.N] = e.Place
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		for _, place := range []journal.Place{e.Place, places[e.N]} { // the old one is found as well
			if len(e.Bodies) == 0 || place.N == 0 {
				continue
			}
			body, err := journal.ReadBody(dir, place, "request")
			if purged[e.N] && !errors.Is(err, journal.ErrPurged) || !purged[e.N] && !bytes.Equal(body, e.Bodies[0].Text) {
				t.Errorf("body of event %d: %s, %v; purged: %v", e.N, body, err, purged[e.N])
			}
		}
	}
}

// The segment whose append failed is closed as soon as the next one is there, and a
// retry leaves it alone.
func TestARetryDoesNotTouchAPurgedSegment(t *testing.T) {
	dir, j, group := failAppend(t, "write journal segment", func(g []byte) []byte { return g[:20] }, false)
	failOnce(t, "sync journal segment", nil)
	if _, err := j.Append(group); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Append = %v; want EIO", err)
	}
	if saved, err := j.Purge(1, func(*journal.Event) bool { return true }); err != nil || saved == 0 {
		t.Fatalf("Purge = %d, %v; want some bytes", saved, err)
	}
	purged := read(t, segment(dir, 1))
	if _, err := j.Append(group); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	if !bytes.Equal(read(t, segment(dir, 1)), purged) {
		t.Error("the retry changed the purged segment")
	}
	wantEvents(t, dir, 5)
}

func TestPurgesMayRunBesideEachOtherAndAppend(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 1000}, 3, 3, 3, 3, 3, 3)
	j := open(t, dir, journal.Options{SegmentSize: 1000})
	purge := func() {
		for n := range uint64(12) {
			if _, err := j.Purge(1, func(e *journal.Event) bool { return e.N <= n }); err != nil {
				t.Error(err)
			}
		}
	}
	waitFor(func() { waitFor(purge, purge) }, func() {
		for range 20 {
			appendGroup(t, j, 2)
		}
	})
	closeJournal(t, j)
	if report, err := journal.Verify(context.Background(), dir); err != nil || report.End.N != 58 || report.Purged == 0 {
		t.Errorf("Verify = %+v, %v; want 58 events and purged bodies", report, err)
	}
}

func TestADamagedSegmentIsNotPurged(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 1000}, 3, 3, 3, 3, 3, 3)
	j := open(t, dir, journal.Options{})
	defer closeJournal(t, j)
	text := bytes.Replace(read(t, segment(dir, 1)), []byte("two"), []byte("too"), 1)
	write(t, segment(dir, 1), text)
	_, err := j.Purge(1, old)
	wantDamage(t, "Purge", err, filepath.Base(segment(dir, 1)), 3)
	if !bytes.Equal(read(t, segment(dir, 1)), text) {
		t.Error("the segment was changed")
	}
}

// purgeSteps are all steps of a purge that can fail, or at which a process can die.
var purgeSteps = []string{"write purged segment", "sync journal file aside", "rename journal file", "sync journal directory"}

func TestAKillInAPurgeLeavesTheOldSegmentOrTheNewOne(t *testing.T) {
	for _, step := range purgeSteps {
		dir := build(t, journal.Options{SegmentSize: 1000}, 3, 3, 3, 3, 3, 3)
		before, err := journal.Verify(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		cmd := play(t, "purge", dir)
		cmd.Env = append(cmd.Env, "JOURNAL_TEST_STEP="+step)
		if err := cmd.Run(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the process ended with %v; want it killed", err)
		}
		closeJournal(t, open(t, dir, journal.Options{}))
		report, err := journal.Verify(context.Background(), dir)
		if err != nil || report.End != before.End || report.Events != before.Events || (report.Purged > 0) != (step == "sync journal directory") {
			t.Errorf("after a kill at %q: Verify = %+v, %v", step, report, err)
		}
		for _, name := range names(t, dir) {
			if strings.HasSuffix(name, ".aside") {
				t.Errorf("%s is left", name)
			}
		}
	}
}

func TestAFailedPurgeLeavesTheSegment(t *testing.T) {
	dir := build(t, journal.Options{SegmentSize: 1000}, 3, 3, 3, 3, 3, 3)
	j := open(t, dir, journal.Options{})
	defer closeJournal(t, j)
	before := read(t, segment(dir, 1))
	for _, step := range purgeSteps[:3] {
		failOnce(t, step, nil)
		if _, err := j.Purge(1, old); !errors.Is(err, syscall.EIO) {
			t.Errorf("Purge with a failed %q = %v; want EIO", step, err)
		}
		if !bytes.Equal(read(t, segment(dir, 1)), before) {
			t.Errorf("a failed %q changed the segment", step)
		}
	}
	if saved, err := j.Purge(1, old); err != nil || saved == 0 {
		t.Errorf("Purge = %d, %v", saved, err)
	}
}

// purgeAndDie purges a segment and is killed at a step.
func purgeAndDie(dir string) error {
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return err
	}
	fault.FailReads(func(step string) error {
		if step == os.Getenv("JOURNAL_TEST_STEP") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
	_, err = j.Purge(1, old)
	return err
}
