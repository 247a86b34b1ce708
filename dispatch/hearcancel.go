package dispatch

import (
	"cmp"
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// hearCancel has a task stopped for whoever asked for it, or for the work that it
// is part of (CLOWL-27). Whoever asked for it is told when that is done, anybody
// else at once; one that has not come yet is stopped when it comes.
func (d *Dispatcher) hearCancel(tx *transaction, c *claim, found bool) error {
	m := c.heard.message
	may, err := mayCancel(tx, c.row, m.From)
	switch {
	case err != nil:
		return err
	case found && !may:
		return d.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "did not ask for what it wants to cancel"})
	}
	talk, _, err := tx.Talk(c.row.Seq)
	if err != nil {
		return err
	}
	record := recordOf(m, task.ByLine, c.row.Seq, c.now)
	record.Act, record.Cause = envelope.Cancels, cmp.Or(talk.Message, conversation.CancelledRequest(m)) // by which whoever tells of the end finds it
	if _, err := tx.Record(record); err != nil {
		return err
	}
	answered := m.From == c.row.Requester && conversation.NotifiedOfEnd(c.row, talk) // with the end
	switch {
	case !found:
		return d.complainTo(tx, c, unknownTask(m))
	case c.row.State == task.Done && answered:
		return nil
	case c.row.State == task.Done:
		why := fmt.Sprintf("%s is over already (%s)", c.row.ID, c.row.Status)
		return d.complainTo(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
	}
	tx.cancelAfter(c.row.Seq, m)
	if m.Dialect != envelope.CLowl || answered {
		return nil
	}
	return d.reply(tx, c, envelope.Message{Act: envelope.Stops, Type: m.Type, Dialect: m.Dialect, Data: encode(map[string]any{"status": envelope.Stopped})})
}

// mayCancel reports whether a task may be cancelled by a message of somebody:
// they asked for it, or for one that it is part of, or have one of those.
func mayCancel(tx *transaction, row task.Task, by string) (bool, error) {
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
func (d *Dispatcher) cancelFor(ctx context.Context, row task.Task, from, message string) {
	if err := d.stop(context.WithoutCancel(ctx), row, core.By{Who: from, Reason: message}); err != nil {
		d.log(row).Warn().Err(err).Msg("task not cancelled; it will be at the next start")
	}
}

// cancelAgain goes on, after a start, with what messages were to cancel.
func (d *Dispatcher) cancelAgain(ctx context.Context) error {
	messages, err := d.Ledger.Cancelled(ctx)
	for _, m := range messages {
		d.cancelFor(ctx, task.Task{Seq: m.Task}, m.From, m.ID)
	}
	return err
}
