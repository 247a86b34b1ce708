package reader

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/task"
	"mailboxd/internal/view"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

// AwaitResult waits for the result of a submission. It waits for the intake first, since
// an earlier revision may have a result.
func (s Submission) AwaitResult(ctx context.Context, at Location) ([]byte, error) {
	if s.File != "" && s.ID != "" {
		if err := s.AwaitIntake(ctx, at); err != nil {
			return nil, err
		}
	}
	return AwaitResult(ctx, at, s.ID)
}

// AwaitResult waits until results/<id>.json is the result of the latest revision.
func AwaitResult(ctx context.Context, at Location, id envelope.ID) ([]byte, error) {
	root, _, err := at.locate()
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, exit.With(exit.Rejected, "the task has no id that a result could be for; see rejected/")
	}
	raw := currentResult(ctx, at, root, id) // also when ctx has ended
	if raw == nil {
		watch, found := context.WithCancel(ctx)
		defer found()
		err = watcher.Watch(watch, []string{filepath.Join(root, "results")}, time.Second, func() {
			if raw = currentResult(ctx, at, root, id); raw != nil {
				found()
			}
		})
	}
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		ctx := context.WithoutCancel(ctx)
		word := Progress(ctx, at, id)
		if !strings.Contains(word, "mailboxd serve") && !isServed(ctx, at) {
			word += "; mailboxd serve is not running"
		}
		return nil, exit.With(exit.Timeout, "task %s has no result yet: %s; see: %s", id, word, view.Command("show", id))
	}
	return raw, nil
}

// currentResult returns the result of the latest revision of a task, or nil.
func currentResult(ctx context.Context, at Location, root string, id envelope.ID) []byte {
	raw, err := mailbox.ReadResult(root, id)
	if err != nil || !isFinal(context.WithoutCancel(ctx), at, id) {
		return nil
	}
	return raw
}

// isFinal is IsFinal with a new reader, since a wait may outlast the daemon.
func isFinal(ctx context.Context, at Location, id envelope.ID) bool {
	r, err := at.Open(ctx)
	if err != nil {
		return false // the caller asks again
	}
	defer r.Close()
	return r.IsFinal(ctx, id)
}

// IsFinal reports whether the result file of a task, once it is there, is the result of
// its latest revision. It is true for a task that the ledger does not know.
func (r *Reader) IsFinal(ctx context.Context, id envelope.ID) bool {
	row, err := r.Latest(ctx, id)
	return exit.CodeOf(err) == exit.NoTask || err == nil && row.ResultFinal
}

// Unfinished returns the error for a task without a result.
func (r *Reader) Unfinished(ctx context.Context, id envelope.ID) error {
	row, err := r.Latest(ctx, id)
	if err != nil {
		return err
	}
	if row.State == task.Done {
		return exit.With(exit.Failed, "the result of %s is missing; mailboxd serve puts it again", id)
	}
	around, err := r.WaitContext(ctx, []client.Task{row}, time.Now())
	if err != nil {
		return err
	}
	return exit.With(exit.Timeout, "task %s has no result yet: it is %s and waits for %s; see: %s", id, view.StateOf(row), around.Wait(row), view.Command("show", id))
}
