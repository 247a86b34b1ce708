package schedule

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/internal/decisions/task"
)

// startAll runs functions, each in a goroutine that the returned group waits for.
func startAll(functions ...func()) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	return &group
}

// A table has rows as the ledger has them.
type table struct {
	mu    sync.Mutex
	rows  map[int64]time.Time
	asked int
	fails bool
}

// rowsAt returns a table of tasks that are due some time after a time.
func rowsAt(start time.Time, after map[int64]time.Duration) *table {
	t := &table{rows: map[int64]time.Time{}}
	for seq, d := range after {
		t.rows[seq] = start.Add(d)
	}
	return t
}

// write writes a row as a transaction does.
func (r *table) write(timers *Timers, seq int64, due time.Time) {
	r.mu.Lock()
	if r.rows[seq] = due; due.IsZero() {
		delete(r.rows, seq)
	}
	r.mu.Unlock()
	timers.Written(seq, due)
}

func (r *table) read(_ context.Context, after task.Look, limit int) (found []task.Look, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked++; r.fails {
		return nil, errors.New("the disk failed")
	}
	for seq, at := range r.rows {
		if at.After(after.At) || at.Equal(after.At) && seq > after.Task {
			found = append(found, task.Look{Task: seq, At: at})
		}
	}
	slices.SortFunc(found, func(a, b task.Look) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return int(a.Task - b.Task)
	})
	return found[:min(len(found), limit)], nil
}

// at returns Timers with clocks that tests set.
func at(wall, boot *time.Time, busy func()) *Timers {
	timers := NewTimers(busy)
	timers.wall, timers.boot = func() time.Time { return *wall }, func() time.Time { return *boot }
	return timers
}

// dueOf returns the tasks that are due.
func dueOf(t *Timers, rows *table) (seqs []int64, wait time.Duration) {
	looks, wait := t.due(context.Background(), rows.read)
	for _, l := range looks {
		seqs = append(seqs, l.task)
	}
	return seqs, wait
}

func TestTheEngineIsBusyUntilATaskIsCheckedThatIsToBeCheckedNow(t *testing.T) {
	wall, boot, busy := time.Unix(1e9, 0), time.Unix(1000, 0), 0
	timers, rows := at(&wall, &boot, func() { busy++ }), &table{}
	timers.After(1, 0)
	timers.Now(1) // also when its time has come already
	timers.Now(1)
	timers.After(2, time.Second)
	timers.Now(2)
	if looks, _ := timers.due(t.Context(), rows.read); busy != 2 || len(looks) != 2 || !looks[0].now || !looks[1].now {
		t.Errorf("due = %+v, and the engine is busy with %d; want both tasks once, and 2", looks, busy)
	}
	timers.Now(2)
	timers.After(3, 0)
	boot = boot.Add(time.Second)
	looks, _ := timers.due(t.Context(), rows.read)
	if busy != 3 || len(looks) != 2 || !looks[0].now || looks[1].now {
		t.Errorf("due = %+v, and the engine is busy with %d; want task 2 and then 3 alone without being busy, and 3", looks, busy)
	}
}

func TestRowsAreLookedAtInOrderAndOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		timers, looked := NewTimers(func() {}), make(chan int64, 9)
		now := time.Now()
		rows := rowsAt(now, map[int64]time.Duration{3: 3 * time.Hour, 2: time.Minute + time.Second})
		serving := startAll(func() { timers.Serve(ctx, rows.read, func(seq int64, _ bool) { looked <- seq }) })
		synctest.Wait()
		rows.write(timers, 1, now.Add(time.Second)) // earlier than what Serve waits for
		rows.write(timers, 9, time.Time{})          // at no time
		for _, c := range []struct {
			wait time.Duration
			want []int64
		}{
			{999 * time.Millisecond, nil},
			{time.Millisecond, []int64{1}},
			{time.Minute, []int64{2}},
			{4 * time.Hour, []int64{3}},
		} {
			time.Sleep(c.wait) // the bubble's clock, no real one
			synctest.Wait()
			var seqs []int64
			for len(looked) > 0 {
				seqs = append(seqs, <-looked)
			}
			if !slices.Equal(seqs, c.want) {
				t.Errorf("looks at %v; want %v", seqs, c.want)
			}
		}
		cancel()
		serving.Wait()
	})
}

// What a handler leaves as it was isn't looked at again and again.
func TestARowIsLookedAtOnceForEachTimeThatItIsWritten(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), rowsAt(wall, map[int64]time.Duration{1: -time.Hour, 2: 0})
	for _, want := range [][]int64{{1, 2}, nil, nil} {
		if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, want) {
			t.Errorf("due = %v; want %v", seqs, want)
		}
	}
	rows.write(timers, 1, wall.Add(-time.Minute))
	if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1, which is written", seqs)
	}
	asked := rows.asked
	for range 10 {
		timers.Now(7)
		dueOf(timers, rows)
	}
	if rows.asked != asked {
		t.Errorf("the ledger was asked %d times more although no row was due", rows.asked-asked)
	}
}

func TestNoRowIsMissedThatIsWrittenWhileTheLedgerIsAsked(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), &table{rows: map[int64]time.Time{}}
	after := func(ctx context.Context, from task.Look, limit int) ([]task.Look, error) {
		found, err := rows.read(ctx, from, limit)
		rows.write(timers, 1, wall)                // due already
		rows.write(timers, 2, wall.Add(time.Hour)) // due later
		return found, err
	}
	if looks, _ := timers.due(t.Context(), after); len(looks) > 0 {
		t.Errorf("due = %v; want nothing yet", looks)
	}
	if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1", seqs)
	}
	wall = wall.Add(time.Hour)
	if seqs, _ := dueOf(timers, rows); !slices.Contains(seqs, 2) {
		t.Errorf("an hour later due = %v; want task 2", seqs)
	}
}

func TestManyRowsAtOneTimeAreLookedAtInParts(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), &table{rows: map[int64]time.Time{}}
	for seq := range int64(2*mostRows + 5) {
		rows.rows[seq+1] = wall.Add(-time.Second)
	}
	var all []int64
	for range 4 {
		seqs, _ := dueOf(timers, rows)
		if len(seqs) > mostRows {
			t.Errorf("%d tasks are due at once; want at most %d", len(seqs), mostRows)
		}
		all = append(all, seqs...)
	}
	if len(all) != 2*mostRows+5 || len(slices.Compact(all)) != len(all) {
		t.Errorf("%d tasks were due; want each of the %d once", len(all), 2*mostRows+5)
	}
}

func TestRowsAreReadAgainAfterAFault(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), rowsAt(wall, map[int64]time.Duration{1: 0})
	rows.fails = true
	if seqs, wait := dueOf(timers, rows); len(seqs) > 0 || wait != retryRows {
		t.Errorf("due = %v, %v; want nothing, and a pause", seqs, wait)
	}
	rows.fails = false
	if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1", seqs)
	}
}

// A handler that saw the clock after it was set back found that it was too early.
func TestARowIsLookedAtAgainAfterTheWallClockIsSetBack(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), rowsAt(wall, map[int64]time.Duration{1: 0})
	if seqs, wait := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) || wait != recheck {
		t.Errorf("due = %v, %v; want task 1, and another look at the clock soon", seqs, wait)
	}
	wall = wall.Add(-time.Hour)
	if seqs, wait := dueOf(timers, rows); len(seqs) > 0 || wait != recheck {
		t.Errorf("due an hour before = %v, %v; want nothing", seqs, wait)
	}
	wall = wall.Add(time.Hour)
	if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1 again", seqs)
	}
}

// What is written after the clock was set back may be due before the last look at the clock.
func TestARowIsLookedAtThatIsWrittenAfterTheWallClockIsSetBack(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), &table{rows: map[int64]time.Time{}}
	dueOf(timers, rows) // at the start
	wall = wall.Add(5 * time.Hour)
	timers.Now(7)
	dueOf(timers, rows) // no row is due, so none is read
	wall = wall.Add(-time.Hour)
	rows.write(timers, 1, wall.Add(time.Minute))
	if _, wait := dueOf(timers, rows); wait != time.Minute {
		t.Errorf("the next look is in %v; want it in a minute", wait)
	}
	wall = wall.Add(time.Minute)
	if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) {
		t.Errorf("due = %v; want task 1", seqs)
	}
}

func TestNoRowIsLeftOutIfTheWallClockIsSetBackBetweenTwoParts(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), &table{rows: map[int64]time.Time{}}
	for seq := range int64(2 * mostRows) {
		rows.rows[seq+1] = wall.Add(time.Duration(seq-3*mostRows) * time.Second)
	}
	all := map[int64]bool{}
	for range 4 {
		seqs, _ := dueOf(timers, rows)
		for _, seq := range seqs {
			all[seq] = true
		}
		wall = wall.Add(-time.Second)
	}
	if len(all) != 2*mostRows {
		t.Errorf("%d tasks were due; want %d", len(all), 2*mostRows)
	}
}

func TestAPauseIsAsLongAsItWasMeantHoweverTheWallClockIsSet(t *testing.T) {
	for name, wallStep := range map[string]time.Duration{"not set": 0, "set back": -time.Hour, "set forward": time.Hour} {
		wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
		timers, rows := at(&wall, &boot, func() {}), &table{}
		timers.StartBackoff(1, time.Minute)
		timers.After(2, time.Minute)
		wall, boot = wall.Add(59*time.Second+wallStep), boot.Add(59*time.Second)
		if seqs, wait := dueOf(timers, rows); len(seqs) > 0 || wait != time.Second || !timers.InBackoff(1) {
			t.Errorf("%s: after 59 s due = %v, %v, in the pause %v; want nothing, a second, and true", name, seqs, wait, timers.InBackoff(1))
		}
		boot = boot.Add(time.Second) // asleep or awake
		if seqs, _ := dueOf(timers, rows); !slices.Equal(seqs, []int64{1, 2}) || timers.InBackoff(1) {
			t.Errorf("%s: after a minute due = %v, in the pause %v; want both tasks, false", name, seqs, timers.InBackoff(1))
		}
	}
}

func TestAPauseIsEndedByNothingElse(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), &table{}
	timers.StartBackoff(1, time.Minute)
	timers.After(1, time.Second)
	timers.Now(1)
	boot = boot.Add(time.Second)
	if seqs, wait := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) || wait != 59*time.Second || !timers.InBackoff(1) {
		t.Errorf("after a second due = %v, %v, in the pause %v; want the task for another reason, 59 s, and true", seqs, wait, timers.InBackoff(1))
	}
	timers.StartBackoff(1, time.Second) // the task was tried meanwhile
	timers.StartBackoff(1, 2*time.Minute)
	boot = boot.Add(119 * time.Second)
	if seqs, wait := dueOf(timers, rows); len(seqs) > 0 || wait != time.Second {
		t.Errorf("before the end of the second pause due = %v, %v; want nothing, and a second", seqs, wait)
	}
	timers.EndBackoff(1)
	boot = boot.Add(time.Second)
	if seqs, wait := dueOf(timers, rows); len(seqs) > 0 || wait >= 0 || timers.InBackoff(1) {
		t.Errorf("after the end of a pause due = %v, %v; want nothing any more", seqs, wait)
	}
}

func TestATaskHasOnePauseItsShortest(t *testing.T) {
	wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
	timers, rows := at(&wall, &boot, func() {}), &table{}
	for i := range 1000 {
		timers.After(1, time.Duration(1000-i%500)*time.Millisecond)
	}
	boot = boot.Add(501 * time.Millisecond)
	if seqs, wait := dueOf(timers, rows); !slices.Equal(seqs, []int64{1}) || wait >= 0 {
		t.Errorf("due = %v, %s; want task 1, once", seqs, wait)
	}
}

func TestTheNextLookIsTheEarlierOneOfBothClocks(t *testing.T) {
	for _, c := range []struct{ wall, boot, want time.Duration }{
		{30 * time.Second, 10 * time.Second, 10 * time.Second},
		{10 * time.Second, 30 * time.Second, 10 * time.Second},
		{30 * time.Second, 0, 30 * time.Second},
		{0, 30 * time.Second, 30 * time.Second},
	} {
		wall, boot := time.Unix(1e9, 0), time.Unix(1000, 0)
		timers, rows := at(&wall, &boot, func() {}), &table{}
		if c.wall > 0 {
			rows = rowsAt(wall, map[int64]time.Duration{1: c.wall})
		}
		if c.boot > 0 {
			timers.After(2, c.boot)
		}
		if _, wait := timers.due(t.Context(), rows.read); wait != c.want {
			t.Errorf("looks in %v by the wall clock and %v by the boot clock: the wait is %v; want %v", c.wall, c.boot, wait, c.want)
		}
	}
}

func TestPausesGoByTheTimeSinceTheMachineStarted(t *testing.T) {
	if got := bootClock(); got.After(time.Now().AddDate(-10, 0, 0)) {
		t.Errorf("the boot clock is at %v, which is a time of day; want the time since the machine started", got)
	}
}
