package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"mailboxd/dispatch/executor"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// CancelTree cancels a task as Cancel does, and then all open tasks below it: those that its
// runs asked for, those that their runs asked for, and so on. A run is over before the tasks
// that it asked for are cancelled, and its last lines are read before CancelTree returns, so
// that no later task appears below. CancelTree returns the tasks below that it cancelled, also
// with an error. The error is a *StateError when neither the task nor a task below it is open.
func (d *Dispatcher) CancelTree(ctx context.Context, id envelope.ID, by core.By) ([]task.Task, error) {
	err := d.Cancel(ctx, id, by)
	if _, over := errors.AsType[*core.StateError](err); err != nil && !over {
		return nil, err
	}
	cancelled, below := []task.Task(nil), core.By{Who: by.Who, Reason: withReason("together with "+string(id), by.Reason)}
	for looked := false; ; {
		open, failed := d.Ledger.OpenBelow(ctx, id)
		if failed == nil && len(open) > 0 {
			var ended []task.Task
			ended, failed = d.cancelHighest(ctx, open, below)
			cancelled = append(cancelled, ended...)
			looked = false
		}
		switch {
		case failed != nil:
			return cancelled, fmt.Errorf("cancel the tasks below %s: %w", id, failed)
		case len(open) > 0:
		case !looked:
			_, _ = d.Look(ctx) // it reports a failure itself, and what cannot be read is no task yet
			looked = true
		case len(cancelled) > 0:
			return cancelled, nil
		default:
			return nil, err
		}
	}
}

// cancelHighest cancels those of the tasks that are the fewest below the first one, and
// returns those that are cancelled now.
func (d *Dispatcher) cancelHighest(ctx context.Context, open []task.Task, by core.By) (cancelled []task.Task, err error) {
	end := slices.IndexFunc(open, func(t task.Task) bool { return t.Depth > open[0].Depth })
	if end < 0 {
		end = len(open)
	}
	var mu sync.Mutex // guards cancelled and err
	executor.InParallel(open[:end], func(row task.Task) {
		ended, failed := d.Canceller.CancelOne(ctx, row, by)
		if ended {
			row, failed = d.Ledger.Task(ctx, row.Seq)
		}
		mu.Lock()
		defer mu.Unlock()
		if ended {
			cancelled = append(cancelled, row)
		}
		err = errors.Join(err, failed)
	})
	slices.SortFunc(cancelled, func(a, b task.Task) int { return int(a.Seq - b.Seq) })
	return cancelled, err
}

// withReason adds the reason of a person to what the daemon says.
func withReason(words, reason string) string {
	if reason == "" {
		return words
	}
	return words + ": " + reason
}
