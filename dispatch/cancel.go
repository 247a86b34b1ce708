package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// errElsewhere says that a run is in nobody's hands here, as while stopping.
var errElsewhere = errors.New("its run is being handed over; try again")

// Cancel ends a task with status cancelled: all of its revisions that are not
// done. What has not started is over at once; a run is ended, and Cancel
// returns when nothing is left of it, or with the cause of ctx. The answer of
// one in review is not shown. A task that is done is a *StateError, also when its run came to an end of its own first.
func (d *Dispatcher) Cancel(ctx context.Context, id envelope.ID, by core.By) error {
	err := d.whenReady(ctx)
	for did := false; err == nil; {
		var row task.Task
		if row, err = d.reader.newestOpen(ctx, id); err != nil {
			break
		}
		if row.State == task.Done {
			if did {
				return nil
			}
			err = core.StateErrorOf(row)
			break
		}
		var ended bool
		ended, err = d.canceller.cancelOne(ctx, row, by)
		did = did || ended
	}
	return fmt.Errorf("cancel %s: %w", id, err)
}

// newestOpen returns the latest revision that is not done, or the latest one.
func (rd *reader) newestOpen(ctx context.Context, id envelope.ID) (task.Task, error) {
	revisions, err := rd.revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	for _, row := range slices.Backward(revisions) {
		if row.State != task.Done {
			return row, nil
		}
	}
	return revisions[len(revisions)-1], nil
}

// cancelOne cancels one revision and reports whether it did. It did not when
// somebody moved the task meanwhile.
func (cn *canceller) cancelOne(ctx context.Context, row task.Task, by core.By) (bool, error) {
	if row.State == task.Running {
		return cn.cancelRun(ctx, row, by)
	}
	q, err := cn.reader.about(ctx, row)
	if err != nil {
		return false, err
	}
	follow, err := cn.endCancelled(ctx, row, q, by)
	if errors.Is(err, core.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cn.log(row).Info().Str("by", by.Who).Msg("task cancelled")
	cn.writer.onCommitted(ctx, follow)
	return true, nil
}

// endCancelled ends a task that is cancelled, and tells the agent that has it in its
// inbox. Its line may be on its way there, so nobody else may append it meanwhile.
func (cn *canceller) endCancelled(ctx context.Context, row task.Task, q decisionSubject, by core.By) (consequences, error) {
	defer cn.names.lock(row.ID)()
	return cn.writer.commit(ctx, func(tx *transaction) error {
		state, err := loads(row.Seq, q.began, true)(tx)
		if err != nil {
			return err
		}
		answer, err := cn.writer.decideIn(tx, state, &core.Cancel{
			Task: row.Seq, Seen: core.See(row), By: by, Request: q.task, Levels: q.verdict.Levels, Result: q.result,
		}, time.Now())
		if err = cmp.Or(err, answer); err != nil {
			return err
		}
		return cn.messenger.recallTask(tx, row, by)
	})
}

// recallTask tells an agent that has a task in its inbox, and has not answered it, that
// the task is cancelled: with CNCL, or with CAP's 499. AINL has no word for that.
func (ms *messenger) recallTask(tx *transaction, row task.Task, by core.By) error {
	inbox, in := ms.agents.Inbox(row.Agent).File, ms.agents.Protocol.Dialect(row.Agent)
	if inbox == "" || in == envelope.AINL || row.State == task.Review {
		return nil
	}
	was, err := tx.Delivery(row.Seq)
	if err != nil || was.Appended.IsZero() {
		return err
	}
	talk, _, err := tx.Talk(row.Seq)
	if err != nil {
		return err
	}
	m := envelope.Message{
		Act: envelope.Cancels, Task: row.ID, Cause: cmp.Or(talk.Message, string(row.ID)), Thread: talk.Thread, Trace: talk.Trace,
		From: envelope.Ourselves, To: []string{row.Agent}, Type: row.Type, Time: time.Now(), Text: (&CancelError{by}).Error(),
	}
	if by.Who == row.Requester {
		m.From = row.Requester
	}
	record, ok := outgoing(in, m, row.Seq, inbox)
	if !ok {
		return nil
	}
	record.Cause = "" // nobody's wish that has to be answered
	_, err = tx.Record(record)
	return err
}

// cancelRun ends a run and waits until nothing is left of it.
func (cn *canceller) cancelRun(ctx context.Context, row task.Task, by core.By) (bool, error) {
	runs := cn.runs.of(row.Seq)
	for _, r := range runs {
		r.end(&CancelError{by})
	}
	if err := await(ctx, runs); err != nil {
		return false, fmt.Errorf("its run is still being ended: %w", err)
	}
	now, err := cn.Ledger.Task(ctx, row.Seq)
	switch {
	case err != nil:
		return false, err
	case now.State == task.Running && now.Attempt == row.Attempt:
		return false, errElsewhere
	}
	return now.State == task.Done && now.Kind == envelope.Cancelled, nil
}
