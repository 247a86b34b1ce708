package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A Publisher puts result files into place and makes callbacks.
type Publisher struct {
	*store.Shared
	writer    *store.Writer
	reader    *store.Reader
	Callbacks *Callbacks
	endings   chan struct{} // holds a token for each run that ended here and is not finished
	missing   chan struct{} // signalled when result files may be missing
	roots     atomic.Int64  // how often the root directory was replaced
}

// KeepResults restores missing result files, at the start and after each replacement of the
// root directory.
func (pb *Publisher) KeepResults(ctx context.Context) {
	for {
		pb.restoreResults(ctx)
		pb.Queue.Done() // ends the AddBusy of this pass
		select {
		case <-ctx.Done():
			return
		case <-pb.missing:
			pb.Queue.AddBusy()
		}
	}
}

// RootReplaced starts a check that puts the result files of all tasks into a new root
// directory.
func (pb *Publisher) RootReplaced() {
	pb.roots.Add(1)
	pb.seekMissing()
}

// seekMissing starts a check of KeepResults for missing files.
func (pb *Publisher) seekMissing() {
	select {
	case pb.missing <- struct{}{}:
	default: // a signal is pending already
	}
}

// restoreResults restores missing result files from the ledger. It checks the whole history in
// the background, and pauses after an error.
func (pb *Publisher) restoreResults(ctx context.Context) {
	for after := int64(0); ctx.Err() == nil; {
		finals, err := pb.Ledger.Finals(ctx, after, store.PageSize)
		if err == nil {
			err = pb.restoreMissing(ctx, finals)
		}
		if err == nil && len(finals) > 0 {
			after = finals[len(finals)-1].Seq
		}
		switch {
		case err != nil:
			pb.FaultLog.Report(store.Restoring, task.Task{}, err)
			select {
			case <-ctx.Done():
			case <-time.After(store.RetryPause):
			}
		case len(finals) < store.PageSize:
			pb.FaultLog.Clear(store.Restoring)
			return
		}
	}
}

// restoreMissing restores the missing results of finished tasks.
func (pb *Publisher) restoreMissing(ctx context.Context, finals []ledger.Final) error {
	ids := make([]envelope.ID, len(finals))
	for i, f := range finals {
		ids[i] = f.ID
	}
	for i, exists := range pb.Box.HaveResults(ids) {
		if exists {
			continue
		}
		row, err := pb.Ledger.Task(ctx, finals[i].Seq)
		if err != nil {
			return err
		}
		if err := pb.restore(ctx, row); err != nil {
			return err
		}
	}
	return nil
}
