package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A Reader reads tasks and judges them.
type Reader struct {
	*Shared
	Writer *Writer
}

// Load reads a task's row and decodes its request again.
func (rd *Reader) Load(ctx context.Context, seq int64) (task.Task, envelope.Task, envelope.Findings, error) {
	row, err := rd.Ledger.Task(ctx, seq)
	if err != nil {
		return row, envelope.Task{}, nil, err
	}
	raw, err := rd.Ledger.Raw(ctx, seq)
	if err != nil {
		return row, envelope.Task{}, nil, err
	}
	t, findings, err := rd.DecodeRow(ctx, row, raw)
	return row, t, findings, err
}

// DecodeRow decodes the request of a task's row.
func (rd *Reader) DecodeRow(ctx context.Context, row task.Task, raw []byte) (envelope.Task, envelope.Findings, error) {
	t, findings := rd.RequestOf(row, raw)
	t.ID = row.ID // also when the id was salvaged from a line that doesn't decode
	t, err := rd.WithSensitivity(ctx, row.Parent, t)
	if err == nil && t.Clutch.IsSigned() {
		t, err = withSignature(ctx, rd.Ledger, row, t)
	}
	return t, findings, err
}

// withSignature marks the signature of a request as verified, if it was so when the request was accepted.
func withSignature(ctx context.Context, from *ledger.Ledger, row task.Task, t envelope.Task) (envelope.Task, error) {
	const most = 100
	for after := int64(0); ; {
		events, err := from.Events(ctx, row.ID, after, most)
		if t = conversation.WithSignature(t, row.Revision, events); t.Clutch.Auth.Verified || err != nil || len(events) < most {
			return t, err
		}
		after = events[len(events)-1].Seq
	}
}

// Newest returns the latest revision of an id.
func (rd *Reader) Newest(ctx context.Context, id envelope.ID) (task.Task, error) {
	all, err := rd.Revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	return all[len(all)-1], nil
}

// Revisions returns the revisions of an id, latest last. There is at least one, or the error
// wraps ledger.ErrUnknown.
func (rd *Reader) Revisions(ctx context.Context, id envelope.ID) ([]task.Task, error) {
	all, err := rd.Ledger.Revisions(ctx, id)
	if err == nil && len(all) == 0 {
		err = ledger.ErrUnknown
	}
	return all, err
}

// NewestOpen returns the latest revision that is not done, or the latest revision.
func (rd *Reader) NewestOpen(ctx context.Context, id envelope.ID) (task.Task, error) {
	revisions, err := rd.Revisions(ctx, id)
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

// Waiting returns the revision of a task that waits for an agent.
func (rd *Reader) Waiting(ctx context.Context, id envelope.ID, agent string) (task.Task, error) {
	revisions, err := rd.Revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	row := revisions[len(revisions)-1]
	for _, revision := range slices.Backward(revisions) {
		if revision.State == task.Waiting {
			row = revision
			break
		}
	}
	switch {
	case row.Agent != agent:
		return row, &core.ForbiddenError{Reason: fmt.Sprintf("it is for the agent %q, not %q", row.Agent, agent)}
	case row.State != task.Waiting:
		return row, core.StateErrorOf(row)
	}
	return row, nil
}

// RunOf returns the recorded run of a task. Without a record it returns a run without a boot
// id, because the run may have begun.
func (rd *Reader) RunOf(ctx context.Context, row task.Task) (task.Run, error) {
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	if err != nil {
		return task.Run{}, err
	}
	for _, run := range runs {
		if run.Attempt == row.Attempt {
			return run, nil
		}
	}
	return task.Run{Terms: task.Terms{Deadline: row.Deadline}}, nil
}

// JobOf returns the job of a task that waits for its agent.
func (rd *Reader) JobOf(ctx context.Context, row task.Task, run task.Run) (task.Job, error) {
	_, t, _, err := rd.Load(ctx, row.Seq)
	return task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		RunID: run.ID, Allowance: run.Reserved, Terms: run.Terms,
	}, err
}

// Ran reports whether a task that does not run now was started before: an attempt has asked for
// another one then.
func (rd *Reader) Ran(ctx context.Context, row task.Task) (bool, error) {
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	return core.Unread(row) || slices.ContainsFunc(runs, func(r task.Run) bool { return !r.Started.IsZero() }), err
}

// Oversees reports whether a task is the review of an answer by an overseer.
func (rd *Reader) Oversees(ctx context.Context, row task.Task) (bool, error) {
	if row.Parent == 0 {
		return false, nil
	}
	conv, _, err := rd.Ledger.Conversation(ctx, row.Seq)
	return conv.Tie == envelope.Oversee, err
}

// RevisionOfResult returns the earlier revision that a result file belongs to, if any. Such a
// file never counts as the answer to a later revision.
func (rd *Reader) RevisionOfResult(ctx context.Context, row task.Task, content []byte) (revision int, found bool, err error) {
	digest := sha256.Sum256(content)
	sum := hex.EncodeToString(digest[:])
	revisions, err := rd.Ledger.Revisions(ctx, row.ID)
	for _, r := range revisions {
		if r.Revision < row.Revision && r.ResultSum == sum {
			return r.Revision, true, nil
		}
	}
	return 0, false, err
}

// AsResult decodes a result file, and reports whether it is a result of a task.
func AsResult(row task.Task, content []byte) (envelope.Result, bool) {
	r, findings := envelope.DecodeResult(content)
	return r, !findings.Refused() && r.TaskID == row.ID
}

// ResultFile returns the path of the result file of a task, relative to the mailbox.
func ResultFile(row task.Task) string { return "results/" + string(row.ID) + ".json" }

// Unmoved reports whether a task in the ledger is as the caller read it before.
func Unmoved(tx *Transaction, row task.Task) (bool, error) {
	now, found, err := tx.Task(row.Seq)
	return found && now.State == row.State && now.Attempt == row.Attempt && slices.Equal(now.Reasons, row.Reasons) &&
		(row.State != task.Waiting || now.Until.Equal(row.Until)), err // a new time means a new claim
}

// Entitled returns a task as it is now, and the reason why a token does not permit an answer to
// it. It works inside a transaction.
func Entitled(tx *Transaction, row task.Task, token string, now time.Time) (task.Task, error) {
	state, err := TaskLoader(row.Seq, false, false)(tx)
	if err != nil {
		return row, err
	}
	t := state.Task(row.Seq)
	return t.Task, core.CheckToken(t, row.Attempt, token, now)
}

// Writing is how long an unreadable result file counts as still being written by a person.
const Writing = 5 * time.Second
