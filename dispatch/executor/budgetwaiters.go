package executor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// BudgetWaiters are the tasks that wait until runs release a part of a limit, oldest first.
// When a run is settled, the first task that waits for one of its limits is woken. When the
// next step of that task is known, the next task is woken. So no task polls, and only the first
// one may find too little.
type BudgetWaiters struct {
	balance    func(ctx context.Context, owner, day string) (task.Balance, error)
	reevaluate func(seq int64) // reevaluates a task

	mu      sync.Mutex // guards the fields below
	settled int        // how many runs were settled
	queues  map[core.LimitKey][]budgetWaiter
	waiting map[int64]core.LimitKey // the limit of a waiting task's queue
	woken   map[int64]core.LimitKey // the former queue of a woken task, until its next step is known
}

// A budgetWaiter is a waiting task with its shortfall.
type budgetWaiter struct {
	seq   int64
	short *core.Shortfall
}

// NewBudgetWaiters returns BudgetWaiters that read accounts with balance, and wake tasks with
// reevaluate.
func NewBudgetWaiters(balance func(ctx context.Context, owner, day string) (task.Balance, error), reevaluate func(seq int64)) *BudgetWaiters {
	return &BudgetWaiters{
		balance: balance, reevaluate: reevaluate,
		queues: map[core.LimitKey][]budgetWaiter{}, waiting: map[int64]core.LimitKey{}, woken: map[int64]core.LimitKey{},
	}
}

// settledCount returns how many runs were settled, for join.
func (w *BudgetWaiters) settledCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled
}

// Settle counts a settled run, and reports whether any task waits.
func (w *BudgetWaiters) Settle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled++
	return len(w.waiting) > 0
}

// join adds a waiting task behind the older ones, and reports true. It reports false when a run
// was settled after settledCount returned since: the shortfall may be outdated.
func (w *BudgetWaiters) join(seq int64, short *core.Shortfall, since int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled != since {
		return false
	}
	key := short.Limit.Key
	if w.woken[seq] == key {
		delete(w.woken, seq) // it will be woken again by its position
	}
	queue := w.queues[key]
	at, _ := slices.BinarySearchFunc(queue, seq, bySeq)
	w.queues[key] = slices.Insert(queue, at, budgetWaiter{seq, short})
	w.waiting[seq] = key
	return true
}

func bySeq(w budgetWaiter, seq int64) int { return cmp.Compare(w.seq, seq) }

// Leave removes a task that may have waited, and wakes the next one: it may not have to wait.
func (w *BudgetWaiters) Leave(seq int64) {
	w.mu.Lock()
	key, waited := w.waiting[seq]
	if waited {
		w.remove(key, seq)
	}
	w.mu.Unlock()
	if next, ok := w.first(key); waited && ok {
		w.wake(key, next.seq)
	}
}

// remove removes a task from its queue. The caller holds mu.
func (w *BudgetWaiters) remove(key core.LimitKey, seq int64) {
	delete(w.waiting, seq)
	queue := w.queues[key]
	if at, found := slices.BinarySearchFunc(queue, seq, bySeq); found {
		queue = slices.Delete(queue, at, at+1)
	}
	if w.queues[key] = queue; len(queue) == 0 {
		delete(w.queues, key)
	}
}

func (w *BudgetWaiters) first(key core.LimitKey) (budgetWaiter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queues[key]) == 0 {
		return budgetWaiter{}, false
	}
	return w.queues[key][0], true
}

// Limits returns all limits that tasks wait for.
func (w *BudgetWaiters) Limits() []core.LimitKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.queues))
}

// WakeNext wakes the first task that waits for a limit, unless the limit's account is still too
// short. The task itself checks all other limits.
func (w *BudgetWaiters) WakeNext(ctx context.Context, key core.LimitKey) {
	next, ok := w.first(key)
	if !ok {
		return
	}
	if key.Owner != "" {
		if balance, err := w.balance(ctx, key.Owner, key.Day); err == nil && next.short.Lasts(balance) {
			return
		}
	}
	w.wake(key, next.seq)
}

// wake reevaluates a task, if it still waits for the limit.
func (w *BudgetWaiters) wake(key core.LimitKey, seq int64) {
	w.mu.Lock()
	waits := w.waiting[seq] == key
	if waits {
		w.remove(key, seq)
		w.woken[seq] = key
	}
	w.mu.Unlock()
	if waits {
		w.reevaluate(seq)
	}
}

// Proceeded handles a task whose next step is known. If the task was woken, the next one is
// woken.
func (w *BudgetWaiters) Proceeded(ctx context.Context, seq int64) {
	w.mu.Lock()
	key, woken := w.woken[seq]
	delete(w.woken, seq)
	w.mu.Unlock()
	if woken {
		w.WakeNext(ctx, key)
	}
}

// IsWoken reports whether a task was woken, and its next step isn't known yet.
func (w *BudgetWaiters) IsWoken(seq int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, woken := w.woken[seq]
	return woken
}
