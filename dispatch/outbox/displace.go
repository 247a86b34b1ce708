package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/fault"
)

// Displace moves the result of an earlier revision to the history. A reader finds "not
// finished" instead of the stale answer (AINL-55).
func (pb *Publisher) Displace(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	now, err := pb.Ledger.Task(ctx, row.Seq)
	if err != nil || !now.Replaces {
		return err // it is moved already, and the file may be the task's own result
	}
	return pb.DisplaceLocked(ctx, row)
}

// DisplaceLocked is Displace for a result that is known to be an earlier one. The caller holds
// the task's lock.
func (pb *Publisher) DisplaceLocked(ctx context.Context, row task.Task) error {
	info, err := pb.Box.StatResult(row.ID)
	irregular := err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink
	later, err := pb.laterResult(ctx, row)
	if err != nil {
		return err
	}
	if !irregular && !later { // an irregular file is no result: it stays, and blocks the next result
		if err := pb.moveToHistory(ctx, row); err != nil {
			return err
		}
	}
	return pb.writer.Update(ctx, func(tx *store.Transaction) error { return tx.MarkDisplaced(row.Seq) })
}

// laterResult reports whether a later revision has put its result already. It has moved the
// earlier one, too.
func (pb *Publisher) laterResult(ctx context.Context, row task.Task) (bool, error) {
	content, _, err := pb.Box.ReadResult(row.ID)
	if err != nil {
		return false, nil // there is no result of the daemon
	}
	digest := sha256.Sum256(content)
	sum := hex.EncodeToString(digest[:])
	revisions, err := pb.Ledger.Revisions(ctx, row.ID)
	return slices.ContainsFunc(revisions, func(r task.Task) bool { return r.Revision > row.Revision && r.ResultSum == sum }), err
}

// moveToHistory moves the earlier result to the history, and leaves the ledger unchanged.
func (pb *Publisher) moveToHistory(ctx context.Context, row task.Task) error {
	revision, result, err := pb.earlierResult(ctx, row)
	if err != nil {
		return err
	}
	if result != nil {
		if err := pb.State.PutHistory(row.ID, revision, result); err != nil {
			return err
		}
	}
	fault.Point("displaced-history")
	if err := pb.Box.RemoveResult(row.ID); err != nil {
		return err
	}
	fault.Point("displaced-removed")
	return nil
}

// earlierResult returns the result before the row's, and its revision; nil for none. When the
// file is gone, as after a power cut, it returns the ledger's copy.
func (pb *Publisher) earlierResult(ctx context.Context, row task.Task) (revision int, result []byte, err error) {
	content, _, err := pb.Box.ReadResult(row.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return pb.earlierInLedger(ctx, row)
	}
	if err != nil {
		return 0, nil, err
	}
	revision, found, err := pb.reader.RevisionOfResult(ctx, row, content)
	if !found {
		revision = row.Revision - 1 // another program placed it while that revision was the latest
	}
	return revision, content, err
}

// earlierInLedger returns the last result before the row's that the ledger has.
func (pb *Publisher) earlierInLedger(ctx context.Context, row task.Task) (revision int, result []byte, err error) {
	revisions, err := pb.Ledger.Revisions(ctx, row.ID)
	for _, r := range slices.Backward(revisions) {
		if r.Revision >= row.Revision || r.ResultSum == "" {
			continue
		}
		result, err := pb.Ledger.Result(ctx, r.Seq)
		if errors.Is(err, ledger.ErrUnknown) {
			err = nil // retention has removed it
		}
		if err == nil && conversation.WasLater(r, result) {
			continue
		}
		return r.Revision, result, err
	}
	return 0, nil, err
}
