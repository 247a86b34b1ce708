package reader

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// AwaitUnlessHeld waits for the result of a submission, or until the task is held for a
// person or for a later time.
func (s Submission) AwaitUnlessHeld(ctx context.Context, at Location) ([]byte, error) {
	var held error
	raw, err := s.awaitWatching(ctx, at, func(ctx context.Context, r *Reader, row client.Task) bool {
		if isHeld(row) {
			held = r.Unfinished(ctx, row.ID)
		}
		return held == nil
	})
	if held != nil && raw == nil {
		return nil, held
	}
	return raw, err
}

// A HeldNote says what a task waits for, with the command that lets it go on.
type HeldNote struct {
	Text        string
	NeedsPerson bool // nothing else ends the wait
}

// AwaitNotifying waits for the result of a submission. Each time the task begins to wait for
// a person or for a later time, it calls notify; also when no daemon runs. It ends with an error
// of notify.
func (s Submission) AwaitNotifying(ctx context.Context, at Location, notify func(HeldNote) error) ([]byte, error) {
	if s.ID != "" && !isServed(ctx, at) {
		if err := notify(HeldNote{Text: "mailboxd serve is not running; the task starts when it runs"}); err != nil {
			return nil, err
		}
	}
	var last string
	var ends error
	raw, err := s.awaitWatching(ctx, at, func(ctx context.Context, r *Reader, row client.Task) bool {
		now := fmt.Sprint(row.State, row.Held)
		if !isHeld(row) || now == last {
			return true
		}
		if around, err := r.WaitContext(ctx, []client.Task{row}, time.Now()); err == nil {
			last = now
			ends = notify(HeldNote{around.HeldNote(row, r.ShortID(ctx, row.ID)), around.NeedsPerson(row)})
		}
		return ends == nil
	})
	if ends != nil && raw == nil {
		return nil, ends
	}
	return raw, err
}

// awaitWatching waits for a result, and meanwhile calls look with the task, again and again,
// until look returns false.
func (s Submission) awaitWatching(ctx context.Context, at Location, look func(context.Context, *Reader, client.Task) bool) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() {
		began := time.Now()
		for goOn := true; goOn && ctx.Err() == nil; {
			pause(ctx, max(time.Since(began)/2, 100*time.Millisecond), time.Second)
			_ = at.Read(ctx, func(ctx context.Context, r *Reader) error { // an error: look again
				row, err := r.Latest(ctx, s.ID)
				if err == nil {
					goOn = look(ctx, r, row)
				}
				return err
			})
			if !goOn {
				cancel()
			}
		}
	})
	raw, err := s.AwaitResult(ctx, at)
	cancel()
	watching.Wait()
	return raw, err
}

// isHeld reports whether a task waits for a person or for a later time.
func isHeld(row client.Task) bool {
	return row.State == task.Held && !slices.Equal(row.Held, []task.Reason{task.Capacity}) || row.State == task.Review ||
		row.State == task.Running && view.WaitsForApproval(row)
}

// ShortID returns the first characters of an id that name no other task now.
func (r *Reader) ShortID(ctx context.Context, id envelope.ID) envelope.ID {
	tasks, err := r.Client.Count(ctx, client.Filter{All: true})
	if err != nil {
		return id
	}
	short := view.ShortID(id, "", "", int64(tasks))
	for len(short) < len(id) {
		ids, err := r.Client.Find(ctx, string(short))
		if err != nil {
			return id
		}
		if !slices.ContainsFunc(ids, func(other envelope.ID) bool { return other != id }) {
			break
		}
		short = id[:len(short)+1]
	}
	return short
}
