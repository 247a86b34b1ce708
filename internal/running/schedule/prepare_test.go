package schedule

import (
	"context"
	"testing"
	"time"
)

// takeAll takes what has a slot or may be prepared, and returns how many items it took.
func takeAll(q *Queue) (taken int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if _, ok := q.next(); !ok {
			return taken
		}
		taken++
	}
}

func TestFewTasksArePreparedForEachSlot(t *testing.T) {
	for name, c := range map[string]struct{ slots, perAgent, want int }{
		"for the slots of all agents":  {slots: 2, perAgent: 9, want: 2 + 2*PrefetchPerSlot},
		"for the slots of their agent": {slots: 9, perAgent: 2, want: 2 + 2*PrefetchPerSlot},
	} {
		q := NewQueue(c.slots, 99, 0, limitOf(c.perAgent))
		q.RecordRun("a", time.Millisecond)
		for seq := range int64(50) {
			q.Push(an(seq+1, "a", "x"))
		}
		if got := takeAll(q); got != c.want {
			t.Errorf("%s: %d tasks are taken; want %d", name, got, c.want)
		}
	}
}

func TestTasksArePreparedForAnAgentWhoseRunsAreQuickOnAverage(t *testing.T) {
	for _, c := range []struct {
		runs     []time.Duration
		prepared bool
	}{
		{[]time.Duration{quickRun - 1}, true},
		{[]time.Duration{quickRun}, false},
		{[]time.Duration{40 * time.Millisecond, 76 * time.Millisecond}, true},  // 49 on average: earlier runs count for three
		{[]time.Duration{40 * time.Millisecond, 84 * time.Millisecond}, false}, // 51
		{nil, false},
	} {
		q := NewQueue(1, 9, 0, limitOf(1))
		for _, took := range c.runs {
			q.RecordRun("a", took)
		}
		q.Push(an(1, "a", "x"))
		q.Push(an(2, "a", "x"))
		if got := takeAll(q) == 2; got != c.prepared {
			t.Errorf("runs of %v: the second task is prepared: %t; want %t", c.runs, got, c.prepared)
		}
	}
}

func TestOfPreparedTasksWithOnePriorityTheOldestGetsTheSlot(t *testing.T) {
	q := oneSlot(0)
	running, _ := q.Take(t.Context())
	older, _ := q.Take(t.Context())
	younger, _ := q.Take(t.Context())
	q.Release(running)
	if !older.slot.valid || younger.slot.valid {
		t.Error("the slot went to the younger task; want the older one to have it")
	}
}

func TestTheEndOfOnePreparationLeavesThoseOfOtherAgents(t *testing.T) {
	q := NewQueue(1, 9, 0, limitOf(1))
	for i, agent := range []string{"a", "a", "b"} {
		q.RecordRun(agent, 0)
		q.Push(an(int64(i+1), agent, "x"))
	}
	takeAll(q)
	q.CancelPrefetch("b")
	if a, b := q.prefetch.count("a"), q.prefetch.count("b"); a != 1 || b != 0 {
		t.Errorf("%d of a and %d of b are prepared; want 1 and 0", a, b)
	}
}

// The task of the busy agent would wait for that agent anyway.
func TestATaskOfTheSamePriorityAsOneOfABusyAgentIsPrepared(t *testing.T) {
	q := NewQueue(1, 9, 0, limitOf(1))
	q.RecordRun("quick", 0)
	q.Push(an(1, "busy", "x"))
	q.Take(t.Context())
	q.Push(an(2, "busy", "x"))
	q.Push(an(3, "quick", "x"))
	if got := takeAll(q); got != 1 {
		t.Errorf("%d tasks are prepared; want 1, that of the quick agent", got)
	}
}

func TestATaskWhoseRunEndedFirstReportsThatItselfUnlessTheDaemonStops(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		take context.Context
		want bool
	}{{t.Context(), true}, {ended, false}} {
		q := oneSlot(0)
		running, _ := q.Take(t.Context())
		prepared, _ := q.Take(t.Context())
		if got := q.WaitForSlot(c.take, ended, prepared); got != c.want {
			t.Errorf("WaitForSlot(stops %t) of a prepared task = %t; want %t", c.take == ended, got, c.want)
		}
		if got := q.WaitForSlot(c.take, t.Context(), running); got != c.want {
			t.Errorf("WaitForSlot(stops %t) of a task with a slot = %t; want %t", c.take == ended, got, c.want)
		}
	}
}
