package dispatch

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/ledger"
)

// hearCancel has a task stopped for whoever asked for it, or for the work that it
// is part of (CLOWL-27). Whoever asked for it is told when that is done, anybody
// else at once; one that has not come yet is stopped when it comes.
func (d *Dispatcher) hearCancel(tx *ledger.Tx, c *claim, found bool) error {
	m := c.heard.message
	may, err := mayCancel(tx, c.row, m.From)
	switch {
	case err != nil:
		return err
	case found && !may:
		return d.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "did not ask for what it wants to cancel"})
	}
	record := recordOf(m, ledger.ByLine, c.row.Seq, c.now)
	record.Act = envelope.Cancels
	if found {
		if talk, talks, err := tx.Talk(c.row.Seq); err != nil {
			return err
		} else if talks {
			record.Cause = talk.Message // by which whoever tells of the end finds it
		}
	}
	if _, err := tx.Record(record); err != nil {
		return err
	}
	switch {
	case !found:
		return d.complainTo(tx, c, unknownTask(m))
	case c.row.State == ledger.Done:
		why := fmt.Sprintf("%s is over already (%s)", c.row.ID, c.row.Status)
		return d.complainTo(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
	}
	c.heard.stop = append(c.heard.stop, c.row)
	if m.Dialect != envelope.CLowl || m.From == c.row.Requester && c.row.Dialect == m.Dialect {
		return nil // they are told of the end
	}
	return d.reply(tx, c, envelope.Message{Act: envelope.Stops, Type: m.Type, Dialect: m.Dialect, Data: encode(map[string]any{"status": "cancelled"})})
}

// mayCancel reports whether a task may be cancelled by a message of somebody:
// they asked for it, or for one that it is part of, or have one of those.
func mayCancel(tx *ledger.Tx, row ledger.Task, by string) (bool, error) {
	for row.Seq != 0 {
		if row.Requester == by {
			return true, nil
		}
		above, _, err := tx.Task(row.Parent)
		if err != nil {
			return false, err
		}
		if row = above; row.Agent == by {
			return true, nil
		}
	}
	return false, nil
}

// cancelFor cancels a task because of a message. It does not wait for the end of
// its run.
func (d *Dispatcher) cancelFor(ctx context.Context, row ledger.Task, from, message string) {
	if err := d.stop(context.WithoutCancel(ctx), row, By{Who: from, Reason: message}); err != nil {
		d.log(row).Warn().Err(err).Msg("task not cancelled; it will be at the next start")
	}
}

// cancelAgain goes on, after a start, with what a message was to cancel.
func (d *Dispatcher) cancelAgain(ctx context.Context, row ledger.Task) error {
	if row.Dialect == envelope.AINL {
		return nil
	}
	m, found, err := d.Ledger.Cancelled(ctx, row.Seq)
	if err == nil && found {
		d.cancelFor(ctx, row, m.From, m.ID)
	}
	return err
}
