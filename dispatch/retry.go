package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// Why a task is not run again.
var (
	ErrStillRefused = errors.New("it is still refused")
	ErrNoRequest    = errors.New("its request is not kept any more; send it again")
)

// Retry has a task run again that ended in error, cancelled or rejected. It
// becomes the next revision, with the same content, so all that is known of
// the one before stays: its runs, its story, and its result, which goes to the
// history. One that ended otherwise, or has not ended, is a *StateError; one
// that policy still refuses stays as it is, which is ErrStillRefused, and one
// whose request is gone is ErrNoRequest.
func (d *Dispatcher) Retry(ctx context.Context, id envelope.ID, by By) error {
	return d.control(ctx, "retry", id, func(last task.Task) (task.Task, bool, error) {
		if last.State != task.Done || !slices.Contains(retriable, last.Status) {
			return last, false, stateError(last)
		}
		raw, err := d.Ledger.Raw(ctx, last.Seq)
		if errors.Is(err, ledger.ErrUnknown) {
			err = ErrNoRequest
		}
		if err != nil {
			return last, false, err
		}
		t, findings := d.requestOf(last, raw)
		if t, err = d.asAbove(ctx, last.Parent, t); err != nil {
			return last, false, err
		}
		verdict, err := d.judgeLineage(ctx, last, d.judge(t, findings, time.Now()))
		if err != nil {
			return last, false, err
		}
		if !verdict.Admit {
			return last, false, fmt.Errorf("%w: %s", ErrStillRefused, verdict.Findings.Refusals())
		}
		return d.resubmit(ctx, last, raw, verdict, by)
	})
}

var retriable = []envelope.Status{envelope.Failed, envelope.Stopped, envelope.Rejected}

// resubmit adds the next revision of a task with the content of the last one.
func (d *Dispatcher) resubmit(ctx context.Context, last task.Task, raw []byte, v task.Verdict, by By) (task.Task, bool, error) {
	row := task.Task{
		ID: last.ID, Revision: last.Revision + 1, Hash: last.Hash, Dialect: last.Dialect,
		State: task.Queued, Agent: last.Agent, Requester: last.Requester, Type: last.Type,
		Deadline: last.Deadline, Received: time.Now(), File: last.File, Offset: last.Offset,
		Latest: true, Replaces: true, Parent: last.Parent, Depth: last.Depth,
	}
	if len(v.Hold) > 0 {
		row.State, row.Reasons, row.Until = task.Held, v.Hold, v.Until
	}
	asks := wantsApproval(row.Reasons)
	if asks {
		row.Until = earliest(row.Until, d.decisionDue(row, row.Received))
	}
	moved := false
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		moved = false
		now, known, err := tx.Latest(last.ID)
		if err != nil || !known || now.Seq != last.Seq {
			return err // a newer request came first
		}
		d.runs.follow(last.Seq)
		if row.Seq, err = tx.Add(row, raw); err != nil {
			return err
		}
		moved = true
		if err := d.talkAgain(tx, row, last.Seq); err != nil {
			return err
		}
		err = tx.Log(event(row, task.KindTaskResubmitted, with(by.data(), "of_revision", last.Revision)))
		if err == nil && asks {
			err = d.ask(tx, row, v, row.Received)
		}
		return err
	})
	return row, moved && err == nil, err
}
