package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// A heldSet remembers which tasks wait for somebody, so that a look can see
// whether one was answered by hand without asking the ledger.
type heldSet struct {
	mu   sync.Mutex // guards seqs
	seqs map[int64]envelope.ID
}

func newHeldSet() *heldSet { return &heldSet{seqs: map[int64]envelope.ID{}} }

func (h *heldSet) add(seq int64, id envelope.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seqs[seq] = id
}

func (h *heldSet) remove(seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seqs, seq)
}

func (h *heldSet) all() map[int64]envelope.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.seqs)
}

// proceed does what a task's state asks for. It is the one place where a
// task enters the queue, whether it was just accepted or is found at start-up.
func (d *Dispatcher) proceed(ctx context.Context, row ledger.Task) {
	if row.Replaces && row.State != ledger.Received {
		if err := d.displace(ctx, row); err != nil {
			d.log(row).Error().Err(err).Msg("earlier result not moved to the history; trying again")
			d.alarms.set(row.Seq, time.Now().Add(retryPause))
			return
		}
	}
	d.held.remove(row.Seq)
	switch row.State {
	case ledger.Queued:
		d.alarms.set(row.Seq, row.Deadline)
		d.queue.push(item{seq: row.Seq, agent: row.Agent, requester: row.Requester})
	case ledger.Held:
		d.held.add(row.Seq, row.ID)
		d.alarms.set(row.Seq, row.Until)
		if slices.Contains(row.Reasons, ledger.ResultInvalid) {
			d.alarms.set(row.Seq, time.Now().Add(settlePause)) // the file may have gone
		}
	case ledger.Done:
		d.settle(ctx, row)
	}
}

// revisit looks at a task whose alarm rang.
func (d *Dispatcher) revisit(ctx context.Context, seq int64) {
	row, t, findings, err := d.load(ctx, seq)
	if err == nil {
		err = d.reconsider(ctx, row, t, findings)
	}
	if err != nil && ctx.Err() == nil {
		d.log(row).Error().Err(err).Msg("task cannot be looked at; trying again")
		d.alarms.set(seq, time.Now().Add(retryPause))
	}
}

func (d *Dispatcher) reconsider(ctx context.Context, row ledger.Task, t envelope.Task, findings envelope.Findings) error {
	if row.Replaces && row.State != ledger.Received {
		d.proceed(ctx, row)
		return nil
	}
	switch row.State {
	case ledger.Done:
		if !row.Put || !row.Delivered {
			d.settle(ctx, row)
		}
		return nil
	case ledger.Held:
		if answered, err := d.foreign(ctx, row); answered || err != nil {
			return err
		}
	case ledger.Queued:
	default:
		return nil
	}
	verdict := d.judge(t, findings, time.Now())
	if row.State == ledger.Queued && verdict.Admit && len(verdict.Hold) == 0 {
		return nil // it waits in the queue already
	}
	return d.apply(ctx, row, t, verdict)
}

// apply moves a task that has not started to where a verdict wants it.
func (d *Dispatcher) apply(ctx context.Context, row ledger.Task, t envelope.Task, v Verdict) error {
	next := row
	moved := false
	var result []byte
	if !v.Admit {
		result = refusal(t, v.Findings, time.Now())
	}
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		moved = false
		switch {
		case !v.Admit:
			next, err = reject(tx, row, v.Findings, result)
			moved = next.Seq != 0
			return err
		case len(v.Hold) > 0:
			next, moved, err = hold(tx, row, v.Hold, v.Until)
			return err
		}
		moved, err = tx.Move(row.Seq, row.State, row.Attempt, ledger.Change{To: ledger.Queued, Attempt: row.Attempt})
		if err != nil || !moved {
			return err
		}
		next.State, next.Reasons, next.Until = ledger.Queued, nil, time.Time{}
		return tx.Log(event(row, "task.queued", nil))
	})
	if err != nil || !moved {
		return err
	}
	d.proceed(ctx, next)
	return nil
}

// hold makes a task wait, with a story only when the reasons are new.
func hold(tx *ledger.Tx, row ledger.Task, reasons []ledger.Reason, until time.Time) (ledger.Task, bool, error) {
	change := ledger.Change{To: ledger.Held, Attempt: row.Attempt, Reasons: reasons, Until: until}
	moved, err := tx.Move(row.Seq, row.State, row.Attempt, change)
	if err != nil || !moved {
		return row, false, err
	}
	news := row.State != ledger.Held || !slices.Equal(row.Reasons, reasons)
	row.State, row.Reasons, row.Until = ledger.Held, reasons, until
	if !news {
		return row, true, nil
	}
	return row, true, tx.Log(event(row, "task.held", map[string]any{"reasons": reasons}))
}
