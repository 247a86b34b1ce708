package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"

	"mailboxd/dispatch/store"
	"mailboxd/internal/conversation"
	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// Displace moves the result of an earlier revision to the history, so that
// its reader finds "not finished" and never the stale answer (AINL-55).
func (pb *Publisher) Displace(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	now, err := pb.Ledger.Task(ctx, row.Seq)
	if err != nil || !now.Replaces {
		return err // somebody else has, and what lies there may be its own
	}
	return pb.DisplaceLocked(ctx, row)
}

// DisplaceLocked is Displace for a result that is known to be an earlier one. The
// caller has locked the task's name.
func (pb *Publisher) DisplaceLocked(ctx context.Context, row task.Task) error {
	info, err := pb.Box.StatResult(row.ID)
	odd := err == nil && !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink
	later, err := pb.laterResult(ctx, row)
	if err != nil {
		return err
	}
	if !odd && !later { // what is odd is not a result of anybody's: left alone, and in the way of the next
		if err := pb.fileAway(ctx, row); err != nil {
			return err
		}
	}
	return pb.writer.Update(ctx, func(tx *store.Transaction) error { return tx.MarkDisplaced(row.Seq) })
}

// laterResult reports whether a later revision than the row's has put its result
// already. Then it has moved the earlier one, too.
func (pb *Publisher) laterResult(ctx context.Context, row task.Task) (bool, error) {
	there, _, err := pb.Box.ReadResult(row.ID)
	if err != nil {
		return false, nil // there is none, or none of ours
	}
	digest := sha256.Sum256(there)
	sum := hex.EncodeToString(digest[:])
	revisions, err := pb.Ledger.Revisions(ctx, row.ID)
	return slices.ContainsFunc(revisions, func(r task.Task) bool { return r.Revision > row.Revision && r.ResultSum == sum }), err
}

// fileAway moves the earlier result to the history, and leaves the ledger as it is.
func (pb *Publisher) fileAway(ctx context.Context, row task.Task) error {
	revision, result, err := pb.earlier(ctx, row)
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

// earlier returns the result that was there before the row's, and the revision
// it belongs to; nil when there was none. A file that is gone, as its name may
// be after a power cut, is what the ledger has.
func (pb *Publisher) earlier(ctx context.Context, row task.Task) (revision int, result []byte, err error) {
	there, _, err := pb.Box.ReadResult(row.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return pb.remembered(ctx, row)
	}
	if err != nil {
		return 0, nil, err
	}
	revision, ours, err := pb.reader.RevisionOfResult(ctx, row, there)
	if !ours {
		revision = row.Revision - 1 // somebody's, while that one was the latest
	}
	return revision, there, err
}

// remembered returns the last result before the row's that the ledger has.
func (pb *Publisher) remembered(ctx context.Context, row task.Task) (revision int, result []byte, err error) {
	revisions, err := pb.Ledger.Revisions(ctx, row.ID)
	for _, r := range slices.Backward(revisions) {
		if r.Revision >= row.Revision || r.ResultSum == "" {
			continue
		}
		result, err := pb.Ledger.Result(ctx, r.Seq)
		if errors.Is(err, ledger.ErrUnknown) {
			err = nil // it was not to be kept any longer
		}
		if err == nil && conversation.WasLater(r, result) {
			continue
		}
		return r.Revision, result, err
	}
	return 0, nil, err
}
