package store

import (
	"context"
	"iter"
	"math"

	"mailboxd/internal/decisions/task"
)

// BeforeAll is the position before those of all tasks.
var BeforeAll = task.Position{Priority: math.MaxInt32}

// HeldOf yields the tasks of an agent that are held, wait for it, or are in review, in the order in
// which they start, and then the error that ended it. A task that is moved meanwhile may be yielded
// as it was.
func (rd *Reader) HeldOf(ctx context.Context, agent string) iter.Seq2[task.Task, error] {
	return pages(func(last task.Task) ([]task.Task, error) {
		after := task.Position{Seq: last.Seq, Priority: last.Priority}
		if last.Seq == 0 {
			after = BeforeAll
		}
		return rd.Ledger.Held(ctx, agent, after, PageSize)
	})
}

// Unfinished yields the tasks of all agents that are neither done nor plain tasks of the queue, the
// oldest first, and then the error that ended it.
func (rd *Reader) Unfinished(ctx context.Context) iter.Seq2[task.Task, error] {
	return pages(func(last task.Task) ([]task.Task, error) { return rd.Ledger.Unfinished(ctx, last.Seq, PageSize) })
}

// pages yields the tasks of pages of PageSize. Each page is read after the last task of the one
// before it; the zero task: the first page.
func pages(read func(last task.Task) ([]task.Task, error)) iter.Seq2[task.Task, error] {
	return func(yield func(task.Task, error) bool) {
		for last := (task.Task{}); ; {
			rows, err := read(last)
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
				last = row
			}
			if err != nil {
				yield(task.Task{}, err)
			}
			if err != nil || len(rows) < PageSize {
				return
			}
		}
	}
}
