package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// ErrNoRequest says that the request of a task is gone, so it can't be run again.
var ErrNoRequest = errors.New("its request is not kept any more; send it again")

// Retry has a task run again that ended in error, cancelled or rejected. It
// becomes the next revision, with the same content, so all that is known of
// the one before stays: its runs, its story, and its result, which goes to the
// history. One that ended otherwise, or has not ended, is a *StateError; one
// that policy still refuses stays as it is, which is ErrStillRefused, and one
// whose request is gone is ErrNoRequest.
func (ct *controls) Retry(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "retry", id, func(last task.Task) (task.Task, bool, error) {
		if last.State != task.Done || !slices.Contains(retriable, last.Status) {
			return last, false, core.StateErrorOf(last)
		}
		raw, err := ct.Ledger.Raw(ctx, last.Seq)
		if errors.Is(err, ledger.ErrUnknown) {
			err = ErrNoRequest
		}
		if err != nil {
			return last, false, err
		}
		t, findings := ct.Reader.RequestOf(last, raw)
		if t, err = ct.Reader.WithParentSensitivity(ctx, last.Parent, t); err != nil {
			return last, false, err
		}
		verdict, err := ct.Reader.JudgeLineage(ctx, last, ct.Reader.Judge(t, findings, time.Now()))
		if err != nil {
			return last, false, err
		}
		if !verdict.Admit {
			return last, false, fmt.Errorf("%w: %s", core.ErrStillRefused, verdict.Findings.Refusals())
		}
		return ct.resubmit(ctx, last, raw, verdict, by)
	})
}

var retriable = []envelope.Status{envelope.Failed, envelope.Stopped, envelope.Rejected}

// resubmit adds the next revision of a task with the content of the last one.
func (ct *controls) resubmit(ctx context.Context, last task.Task, raw []byte, v task.Verdict, by core.By) (task.Task, bool, error) {
	var added task.Task
	err := ct.Writer.Update(ctx, func(tx *store.Transaction) error {
		added = task.Task{}
		state, err := store.LoadRevisions(tx, last.ID)
		if err != nil {
			return err
		}
		ct.Runs.MarkSuccessor(last.Seq)
		answer, err := ct.Writer.DecideIn(tx, state, &core.Resubmit{Task: last.Seq, By: by, Raw: raw, Verdict: v}, time.Now())
		if err != nil || answer != nil {
			return err // a newer request came first
		}
		added = state.Latest(last.ID).Task
		return ct.History.RestartConversation(tx, added, last.Seq)
	})
	return added, err == nil && added.Seq != 0, err
}
