package dispatch

import (
	"context"
	"slices"
	"time"

	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// What a goroutine does that was kept, while others went on, after it had read a
// row of the ledger: for tests, which cannot keep it there.

func (d *Dispatcher) LetIn(ctx context.Context, seq int64) error { return d.steps.admit(ctx, seq) }

func (d *Dispatcher) Apply(ctx context.Context, row task.Task, t envelope.Task, v task.Verdict) error {
	return d.Reader.Apply(ctx, row, t, v)
}

func (d *Dispatcher) ReconsiderReview(ctx context.Context, row task.Task) error {
	return d.steps.overseer.ReevaluateReview(ctx, row)
}

// Admit judges a queued item as a worker does that has taken it.
func (d *Dispatcher) Admit(ctx context.Context, it schedule.Item) (task.Task, task.Job, error) {
	return d.executor.Admit(ctx, it)
}

// RereadFor has answers that cannot be read be read again at once, for so long.
func (d *Dispatcher) RereadFor(total time.Duration) {
	d.executor.Rereading = executor.Rereading{Pause: time.Microsecond, Longest: time.Microsecond, Total: total}
}

// TryReading reads as answers are read that cannot be read.
func TryReading(ctx context.Context, read func() bool) { executor.DefaultRereading.Try(ctx, read) }

func (d *Dispatcher) Settled(ctx context.Context, row task.Task) { d.steps.settled(ctx, row) }

func (d *Dispatcher) Reevaluate(ctx context.Context, seq int64) { d.steps.reevaluate(ctx, seq) }

// PausedNow is what Dispatcher knows of a pause without asking the ledger.
func (d *Dispatcher) PausedNow(agent string) bool { return d.Pauses.Has(agent) }

// RingNow has the deadline of a task checked now.
func (d *Dispatcher) RingNow(seq int64) { d.Timers.After(seq, 0) }

// LoseSteps has the steps that follow from transactions not taken when lost says so, as if the daemon had
// been killed when a transaction was durable. It is called before Serve.
func (d *Dispatcher) LoseSteps(lost func(store.Consequences) bool) {
	follow := d.Writer.OnCommitted
	d.Writer.OnCommitted = func(ctx context.Context, c store.Consequences) {
		if !lost(c) {
			follow(ctx, c)
		}
	}
}

// HangCallbacks has every callback hang until goOn is called.
func (d *Dispatcher) HangCallbacks() (goOn func()) {
	d.Publisher.Callbacks.Mu.Lock()
	return d.Publisher.Callbacks.Mu.Unlock
}

// Follow takes the steps that follow from some moves.
func (d *Dispatcher) Follow(ctx context.Context, moves ...store.Move) {
	d.steps.onCommitted(ctx, store.Consequences{Moves: moves})
}

func (d *Dispatcher) ResumeRow(ctx context.Context, row task.Task) { d.steps.advance(ctx, row) }

func (d *Dispatcher) StopRun(ctx context.Context, row task.Task, by core.By) (bool, error) {
	return d.Canceller.StopRun(ctx, row, by)
}

// HeldSeqs are the tasks that a look compares with the result files.
func (d *Dispatcher) HeldSeqs() (seqs []int64) {
	seqs, _, err := d.Ledger.HeldNames(context.Background())
	if err != nil {
		panic(err)
	}
	return seqs
}

// AtWork reports whether a run of a task has begun, so that its agent can ask for tasks.
func (d *Dispatcher) AtWork(seq int64) bool {
	return slices.ContainsFunc(d.Runs.Of(seq), func(r *store.Run) bool { return r.Began.Load() })
}

// HasRoom reports whether intake may continue.
func (d *Dispatcher) HasRoom() bool { return d.Queue.HasRoom() }
