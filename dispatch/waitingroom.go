package dispatch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// A waitingRoom knows which tasks wait for others to leave something of a
// budget, the oldest first for each. Who settles calls the first; who was
// called and begins, or goes elsewhere, has the next one called. So nobody
// polls, and nobody is called in vain but the first.
type waitingRoom struct {
	mu      sync.Mutex // guards what follows
	settled int        // how often a run was
	waiting map[core.LimitKey][]waiter
	where   map[int64]core.LimitKey // the key under which a task waits
	called  map[int64]core.LimitKey // or waited
}

// A waiter is a task, and what it waits for.
type waiter struct {
	seq   int64
	short *core.Shortfall
}

func newWaitingRoom() *waitingRoom {
	return &waitingRoom{waiting: map[core.LimitKey][]waiter{}, where: map[int64]core.LimitKey{}, called: map[int64]core.LimitKey{}}
}

// now is what to tell join, from before it was known that there is too little.
func (w *waitingRoom) now() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled
}

// settle notes that a run was settled, and reports whether somebody waits.
func (w *waitingRoom) settle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled++
	return len(w.where) > 0
}

// join has a task wait, behind those that are older. It reports false when a
// run was settled since, so that the task had better look again.
func (w *waitingRoom) join(seq int64, short *core.Shortfall, since int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := short.Limit.Key
	if w.settled != since {
		return false
	}
	if w.called[seq] == key {
		delete(w.called, seq) // it is the one to be called again
	}
	line := w.waiting[key]
	at, _ := slices.BinarySearchFunc(line, seq, bySeq)
	w.waiting[key] = slices.Insert(line, at, waiter{seq, short})
	w.where[seq] = key
	return true
}

func bySeq(w waiter, seq int64) int { return cmp.Compare(w.seq, seq) }

// leave takes a task out that waits, and says for what it waited.
func (w *waitingRoom) leave(seq int64) (key core.LimitKey, waited bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, waited = w.where[seq]
	if waited {
		w.remove(key, seq)
	}
	return key, waited
}

// remove forgets a waiter. The caller holds mu.
func (w *waitingRoom) remove(key core.LimitKey, seq int64) {
	delete(w.where, seq)
	line := w.waiting[key]
	if at, found := slices.BinarySearchFunc(line, seq, bySeq); found {
		line = slices.Delete(line, at, at+1)
	}
	if w.waiting[key] = line; len(line) == 0 {
		delete(w.waiting, key)
	}
}

func (w *waitingRoom) first(key core.LimitKey) (waiter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting[key]) == 0 {
		return waiter{}, false
	}
	return w.waiting[key][0], true
}

// keys returns all that tasks wait for.
func (w *waitingRoom) keys() []core.LimitKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.waiting))
}

// call takes out a waiter that is to look again, if it still waits.
func (w *waitingRoom) call(key core.LimitKey, seq int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.where[seq] != key {
		return false
	}
	w.remove(key, seq)
	w.called[seq] = key
	return true
}

// answer returns for what a task waited that was called, once.
func (w *waitingRoom) answer(seq int64) (key core.LimitKey, called bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, called = w.called[seq]
	delete(w.called, seq)
	return key, called
}

func (w *waitingRoom) wasCalled(seq int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, called := w.called[seq]
	return called
}

// callNext has the first one that waits for something look again, unless it
// would find too little.
func (d *Dispatcher) callNext(ctx context.Context, key core.LimitKey) {
	next, ok := d.waits.first(key)
	if ok && !d.inVain(ctx, next.short) && d.waits.call(key, next.seq) {
		d.alarms.after(next.seq, 0)
	}
}

// inVain reports whether an account is still too short because of what others
// have reserved. Of anything else whoever needs it finds out.
func (d *Dispatcher) inVain(ctx context.Context, short *core.Shortfall) bool {
	key := short.Limit.Key
	if key.Owner == "" {
		return false
	}
	now, err := d.Ledger.Balance(ctx, key.Owner, key.Day)
	return err == nil && short.Lasts(now)
}

// answered is for a task whose next step is known. If it was called, the next
// one is.
func (d *Dispatcher) answered(ctx context.Context, seq int64) {
	if key, called := d.waits.answer(seq); called {
		d.callNext(ctx, key)
	}
}

// answeredElsewhere is for a task that was looked at: one that is queued
// answers when its turn comes.
func (d *Dispatcher) answeredElsewhere(ctx context.Context, seq int64) {
	if !d.waits.wasCalled(seq) {
		return
	}
	if row, err := d.Ledger.Task(ctx, seq); err == nil && row.State != task.Queued {
		d.answered(ctx, seq)
	}
}

// settled calls those whom it may concern that a run is over. The caller has
// committed that.
func (d *Dispatcher) settled(ctx context.Context, row task.Task) {
	if d.agents.Forget != nil {
		d.agents.Forget(d.State.RunDir(row.ID, row.Revision, row.Attempt))
	}
	if !d.waits.settle() {
		return
	}
	keys := []core.LimitKey{{Task: row.Seq}}
	runs, err := d.Ledger.Runs(ctx, row.Seq)
	for _, run := range runs {
		for _, a := range run.Terms.Accounts {
			keys = append(keys, core.KeyOf(a))
		}
	}
	for seq := row.Parent; seq != 0 && err == nil; {
		keys = append(keys, core.LimitKey{Task: seq})
		var parent task.Task
		parent, err = d.Ledger.Task(ctx, seq)
		seq = parent.Parent
	}
	if err != nil && ctx.Err() == nil {
		d.complain(judging, row, err)
	}
	if err != nil {
		keys = d.waits.keys() // whoever waits for something else than this run left waits again
	}
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			d.callNext(ctx, key)
		}
	}
}

// outOfTurn is for a task that may have waited, and does not any more: others
// may not have to wait behind it.
func (d *Dispatcher) outOfTurn(seq int64) {
	key, waited := d.waits.leave(seq)
	if !waited {
		return
	}
	if next, ok := d.waits.first(key); ok && d.waits.call(key, next.seq) {
		d.alarms.after(next.seq, 0)
	}
}
