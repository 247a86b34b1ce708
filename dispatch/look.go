package dispatch

import (
	"context"
	"fmt"

	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// Look takes in what is new in the mailbox: task lines, and results that
// somebody else placed. Events are hints, so it may be called at any time and
// from several goroutines. What it cannot do is logged once and tried again
// by the next look. It waits until Serve has recovered what was left over.
func (d *Dispatcher) Look(ctx context.Context) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return
	}
	d.looking.Lock()
	defer d.looking.Unlock()
	fault := ""
	if err := d.look(ctx); err != nil && ctx.Err() == nil {
		fault = err.Error()
	}
	switch {
	case fault == d.lastFault:
	case fault == "":
		d.opts.Log.Info().Msg("mailbox is readable again")
	default:
		d.opts.Log.Error().Str("reason", fault).Msg("mailbox cannot be read; trying again")
	}
	d.lastFault = fault
}

func (d *Dispatcher) look(ctx context.Context) error {
	replaced, err := d.Box.Refresh()
	if err != nil {
		return err
	}
	if replaced {
		d.opts.Log.Warn().Str("root", d.Box.Path()).Msg("root directory was replaced; going on in the new one")
	}
	for ctx.Err() == nil && d.queue.hasRoom() {
		batch, err := d.tail.Next()
		if err != nil {
			return err
		}
		if batch.Empty() {
			break
		}
		if err := d.take(ctx, batch); err != nil {
			return err // the batch comes again
		}
		d.tail.Done(batch)
	}
	d.adoptHeld(ctx)
	return nil
}

// take moves one batch into the ledger. The lines and the offset behind them
// are one transaction, so neither can be remembered without the other.
func (d *Dispatcher) take(ctx context.Context, batch mailbox.Batch) error {
	claims := d.read(batch.Lines)
	if err := d.bury(claims); err != nil {
		return err
	}
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		for _, c := range claims {
			if err := d.accept(tx, c); err != nil {
				return fmt.Errorf("accept %s at %d: %w", c.line.File, c.line.Offset, err)
			}
		}
		return tx.SetFile(ledger.File(batch.Cursor))
	})
	if err != nil {
		return err
	}
	for _, c := range claims {
		d.follow(ctx, c)
	}
	return nil
}

// lookWhenThereIsRoom goes on with intake that paused at a full queue.
func (d *Dispatcher) lookWhenThereIsRoom(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.queue.room:
			d.Look(ctx)
		}
	}
}
