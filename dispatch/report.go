package dispatch

import (
	"context"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// reporting takes what the agent of a run says about its progress: it becomes
// part of the story of the task, and its requester is told. It is nil when nobody
// would hear of it.
func (d *Dispatcher) reporting(ctx context.Context, row task.Task) func(envelope.Message) {
	if !conversation.MayNotify(row) {
		return nil
	}
	return func(m envelope.Message) {
		err := d.update(context.WithoutCancel(ctx), func(tx *transaction) error {
			return tx.Log(event(row, task.KindTaskProgress, conversation.Progress(m)))
		})
		if err != nil {
			d.log(row).Warn().Err(err).Msg("progress of a run not noted")
			return
		}
		d.nudgeOf(row)
	}
}
