package executor

import (
	"slices"
	"testing"

	"mailboxd/dispatch/exchange"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A line that is kept keeps the whole block that was read with it, so lines from
// here and there would keep a backlog.
func TestLinesThatAreKeptFollowEachOther(t *testing.T) {
	f := NewFreshTasks()
	line := make([]byte, maxFreshBytes/8)
	keep := func(seqs ...int64) {
		for _, seq := range seqs {
			c := &exchange.Submission{Task: envelope.Task{Raw: line}}
			c.Row = task.Task{Seq: seq, State: task.Queued, Dialect: envelope.AINL}
			f.Keep(c)
		}
	}
	take := func(seqs ...int64) {
		for _, seq := range seqs {
			if _, ok := f.take(seq); !ok {
				t.Errorf("task %d is not kept", seq)
			}
		}
	}
	kept := func() (seqs []int64) {
		for seq := range f.tasks {
			seqs = append(seqs, seq)
		}
		slices.Sort(seqs)
		return seqs
	}
	keep(1, 2, 3, 4, 5, 6, 7, 8, 9)
	take(1)
	keep(10)
	take(2, 3)
	keep(11)
	if want := []int64{4, 5, 6, 7, 8}; !slices.Equal(kept(), want) {
		t.Errorf("kept are %d; want %d: nothing more before half of them were taken", kept(), want)
	}
	take(4)
	keep(12, 13)
	if want := []int64{5, 6, 7, 8, 12, 13}; !slices.Equal(kept(), want) {
		t.Errorf("kept are %d; want %d", kept(), want)
	}
}
