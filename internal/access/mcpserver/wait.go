package mcpserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxWait is how long wait_result may take: editors give up on a tool after a
// minute.
const maxWait = 50 * time.Second

// firstLook is how long a shorter wait takes at most, until it has looked once: without a
// look it knows nothing of the task.
const firstLook = 5 * time.Second

// heartbeat is how often it is said that we still wait.
const heartbeat = 5 * time.Second

// unseen is the state of a task that nobody knows, and unseenWhy the reason.
const (
	unseen    = "unknown"
	unseenWhy = "no task has this id; when it was sent just now, the daemon may not have read it yet"
)

// waitArgs are the arguments of wait_result.
type waitArgs struct {
	TaskID  string   `json:"task_id"`
	Seconds *float64 `json:"timeout_seconds"`
}

// waitResult answers when the task has ended, or after the time given. What
// looks for the end may be stuck in a disk or a daemon; that keeps nobody here.
func (s *server) waitResult(ctx context.Context, c call, in waitArgs) (answer, error) {
	id, err := taskID(in.TaskID)
	if err != nil {
		return answer{}, err
	}
	patience, err := in.patience()
	if err != nil {
		return answer{}, err
	}
	ctx, stop := context.WithTimeout(ctx, max(patience, firstLook))
	defer stop()
	w := &wait{server: s, last: answer{TaskID: id, State: unseen}, looked: make(chan struct{})}
	s.work.Go(func() {
		defer stop()
		w.watch(ctx, stop)
	})
	w.report(ctx, c, patience)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.err
}

func (in *waitArgs) patience() (time.Duration, error) {
	switch {
	case in.Seconds == nil:
		return maxWait, nil
	case *in.Seconds < 0:
		return 0, errors.New("timeout_seconds: must not be negative")
	}
	return time.Duration(min(*in.Seconds, maxWait.Seconds()) * float64(time.Second)), nil
}

// A wait is one call of wait_result.
type wait struct {
	*server
	looked chan struct{} // closed by the first look that saw anything

	mu   sync.Mutex // guards last, err and seen
	last answer
	err  error
	seen bool // looked is closed
}

// watch looks until there is nothing more to wait for, and then calls over.
func (w *wait) watch(ctx context.Context, over func()) {
	err := w.Watch(ctx, func() {
		if w.look(ctx) {
			over()
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

// look reports whether there is nothing more to wait for.
func (w *wait) look(ctx context.Context) bool {
	w.mu.Lock()
	before, failed := w.last, w.err
	w.mu.Unlock()
	if before.Finished || failed != nil || ctx.Err() != nil {
		return true
	}
	now, err := w.answer(ctx, before.TaskID)
	switch {
	case errors.Is(err, errMissing): // somebody else may have sent it just now
		now, err = answer{TaskID: before.TaskID, State: unseen, Why: unseenWhy}, nil
	case now.Finished: // it waits for nothing any more
	case now.State != before.State:
		now.Why = w.why(ctx, now)
	default:
		now.Why = before.Why
	}
	if ctx.Err() != nil && !now.Finished {
		return true // what was seen is cut short
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last, w.err = now, err; !w.seen {
		w.seen = true
		close(w.looked)
	}
	return now.Finished || err != nil
}

// report sends the progress of the wait to a caller that wants it, until the wait is over.
func (w *wait) report(ctx context.Context, c call, patience time.Duration) {
	began, pulse, enough := time.Now(), time.NewTicker(heartbeat), time.After(patience)
	defer pulse.Stop()
	var looked chan struct{} // nil, which blocks, before the time is up
	for {
		select {
		case <-ctx.Done():
			return
		case <-enough:
			looked = w.looked
			continue
		case <-looked:
			return
		case <-pulse.C:
		}
		if c.progress == nil {
			continue
		}
		w.mu.Lock()
		last := w.last
		w.mu.Unlock()
		params := &mcp.ProgressNotificationParams{
			ProgressToken: c.progress, Message: last.words(),
			Progress: time.Since(began).Seconds(), Total: patience.Seconds(),
		}
		if err := c.session.NotifyProgress(ctx, params); err != nil {
			w.opts.Log.Debug().Err(err).Msg("progress not sent")
		}
	}
}

// words say where a task is to a person.
func (a answer) words() string {
	if a.Why == "" {
		return a.State
	}
	return a.State + ": " + a.Why
}
