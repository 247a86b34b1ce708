package reader

import (
	"bytes"
	"context"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
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

// AwaitResult waits until results/<id>.json is the result of the latest revision. It looks at
// that one file, less often the longer it waits: the end of an inotify watch takes the kernel up to
// 70 ms.
func AwaitResult(ctx context.Context, at Location, id envelope.ID) ([]byte, error) {
	root, _, err := at.locate()
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, exit.With(exit.Rejected, "the task has no id that a result could be for; see rejected/")
	}
	w, began := resultWait{at: at, root: root, id: id}, time.Now()
	raw := w.look(ctx, began) // also when ctx has ended
	for raw == nil && ctx.Err() == nil {
		pause(ctx, time.Since(began)/50, 100*time.Millisecond)
		raw = w.look(ctx, time.Now())
	}
	if raw != nil {
		return raw, nil
	}
	ctx = context.WithoutCancel(ctx)
	word := Progress(ctx, at, id)
	if !strings.Contains(word, "mailboxd serve") && !isServed(ctx, at) {
		word += "; mailboxd serve is not running"
	}
	return nil, exit.With(exit.Timeout, "task %s has no result yet: %s; see: %s", id, word, view.Command("show", id))
}

// pause waits for d, but at least 5 ms and at most longest, or until ctx ends.
func pause(ctx context.Context, d, longest time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(min(max(d, 5*time.Millisecond), longest)):
	}
}

// A resultWait looks for the result of the latest revision of a task. It asks the ledger whether a
// file is that result at once, and then the less often the longer the file stays: it may be that of an
// earlier revision.
type resultWait struct {
	at   Location
	root string
	id   envelope.ID

	file    []byte    // the result that isn't final, if there is one
	changed time.Time // when file was seen first
	next    time.Time // when the ledger is asked about file again
}

// look returns the result, or nil.
func (w *resultWait) look(ctx context.Context, now time.Time) []byte {
	raw, err := mailbox.ReadResult(w.root, w.id)
	if err != nil {
		return nil
	}
	if w.file == nil || !bytes.Equal(raw, w.file) {
		w.file, w.changed, w.next = raw, now, now
	}
	if now.Before(w.next) {
		return nil
	}
	if isFinal(context.WithoutCancel(ctx), w.at, w.id) {
		return raw
	}
	w.next = now.Add(min(max(now.Sub(w.changed)/2, 5*time.Millisecond), time.Second))
	return nil
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
