package dispatch

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// A CancelError is the cause with which a run is ended that somebody cancelled.
type CancelError struct{ By core.By }

func (e *CancelError) Error() string { return "cancelled by " + e.By.String() }

// A run is something an agent does now, or is about to.
type run struct {
	item    schedule.Item
	ctx     context.Context // of the agent function, for as long as it is called
	end     context.CancelCauseFunc
	began   atomic.Bool // it may have asked for something
	stopped atomic.Bool // nobody waits to see its task cancelled
	meter   meter
	over    chan struct{} // closed when nothing more will come of it
	loose   func() bool   // has it not end with the work any more; nil: it never did, but for ctx

	callback atomic.Pointer[envelope.Callback] // what its task asks for; nil: nobody has read that here
	result   atomic.Pointer[[]byte]            // what its task has ended with; nil: it has not
	draft    atomic.Pointer[draft]             // of that; nil: there is none
	shown    atomic.Bool                       // somebody shows that, or has
	guarded  atomic.Pointer[task.Task]         // its task, when the answer needs an approval; nil: it does not
	followed atomic.Bool                       // a later revision may be there: only the ledger knows
}

// stop ends a run for somebody who does not wait for what becomes of its task. It
// reports false when the run was over.
func (r *run) stop(by core.By) bool {
	r.stopped.Store(true)
	r.end(&CancelError{by})
	return !errors.Is(context.Cause(r.ctx), context.Canceled) // which is what finish says
}

// cancelled returns with what the run was ended, if somebody cancelled it.
func (r *run) cancelled() (*CancelError, bool) {
	return errors.AsType[*CancelError](context.Cause(r.ctx))
}

// conclude makes a run that was cut short because somebody cancelled it end as
// cancelled. One that came to an end of its own before that keeps it.
func (r *run) conclude(o task.Outcome) task.Outcome {
	if why := r.meter.excess(); why != "" {
		o.Result.Review.Ask(why)
	}
	why, cancelled := r.cancelled()
	if !cancelled || o.Detached || o.Unread != nil || o.Exit.Cause != task.CauseInterrupted && o.Result.Error.Kind != envelope.RunLost {
		return o
	}
	o.Retry = false
	o.Result.Status = envelope.Stopped
	o.Result.Error = envelope.Error{Kind: envelope.Cancelled, Message: why.Error()}
	return o
}

// neverBegun is the outcome of a run that was cancelled, if it was, and of which
// nothing was started: it is not to be begun later.
func (r *run) neverBegun(j task.Job) (o task.Outcome, cancelled bool) {
	why, cancelled := r.cancelled()
	if !cancelled {
		return task.Outcome{}, false
	}
	now := time.Now()
	return task.Outcome{
		Exit: task.Exit{Code: -1, Cause: task.CauseInterrupted, Finished: now},
		Result: envelope.Result{
			TaskID: j.Task.ID, AgentID: j.Task.Agent, Status: envelope.Stopped,
			Output: envelope.Output{Summary: core.Opening(envelope.Stopped) + why.Error(), Enforcement: j.Levels},
			Time:   envelope.TimeUsed{Started: now, Finished: now},
			Error:  envelope.Error{Kind: envelope.Cancelled, Message: why.Error()},
		},
	}, true
}

// showsItsOwn reports whether what the run ends with is shown as it is in hand,
// and not as the ledger has it.
func (r *run) showsItsOwn() bool { return r.callback.Load() != nil && !r.followed.Load() }

// runSet knows what runs now, so that somebody can end or await it.
type runSet struct {
	mu      sync.Mutex            // guards what follows
	all     map[int64][]*run      // by task: one, or for a moment the next as well
	refused map[int64]refusedTask // those whose result is not put yet
}

func newRunSet() *runSet {
	return &runSet{all: map[int64][]*run{}, refused: map[int64]refusedTask{}}
}

// begin makes a run known until over is called for it.
func (s *runSet) begin(ctx context.Context, it schedule.Item) *run {
	r := &run{item: it, over: make(chan struct{})}
	r.ctx, r.end = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[it.Seq] = append(s.all[it.Seq], r)
	return r
}

// under has a run that was begun elsewhere end with ctx.
func (r *run) under(ctx context.Context) {
	r.loose = context.AfterFunc(ctx, func() { r.end(context.Cause(ctx)) })
}

// finish says that nothing more will come of a run.
func (s *runSet) finish(r *run) {
	if r.loose != nil {
		r.loose()
	}
	r.end(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.all[r.item.Seq], func(other *run) bool { return other == r })
	if s.all[r.item.Seq] = left; len(left) == 0 {
		delete(s.all, r.item.Seq)
	}
	close(r.over)
}

// of returns the runs of a task.
func (s *runSet) of(seq int64) []*run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[seq])
}

// find returns the runs that match.
func (s *runSet) find(match func(schedule.Item) bool) (found []*run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.all {
		for _, r := range runs {
			if match(r.item) {
				found = append(found, r)
			}
		}
	}
	return found
}

// guarded returns the tasks that run now and whose answers need an approval.
func (s *runSet) guarded() (rows []task.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.all {
		for _, r := range runs {
			if row := r.guarded.Load(); row != nil {
				rows = append(rows, *row)
			}
		}
	}
	return rows
}

// isGuarded reports whether a task runs now and its answer needs an approval.
func (s *runSet) isGuarded(seq int64) bool {
	return slices.ContainsFunc(s.of(seq), func(r *run) bool { return r.guarded.Load() != nil })
}

// follow says that a later revision of a task may have been accepted. Whoever
// accepts one says so before that is committed.
func (s *runSet) follow(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		r.followed.Store(true)
	}
	if t, ok := s.refused[seq]; ok {
		t.run.followed.Store(true)
	}
}

// end says that the run of a task ends it, with a result that is durable when
// the transaction is that says so. A nil one says that it does not.
func (s *runSet) end(seq int64, result []byte) {
	said := &result
	if result == nil {
		said = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		r.result.Store(said)
	}
}

// ended returns the run that has just ended a task, or stands for one of a task
// that was refused, if all there is to show of that is in hand.
func (s *runSet) ended(seq int64) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		if r.callback.Load() != nil && r.result.Load() != nil {
			return r
		}
	}
	return s.refused[seq].run
}

// await blocks until the runs are over, or ctx ends.
func await(ctx context.Context, runs []*run) error {
	for _, r := range runs {
		select {
		case <-r.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// A refusedTask is a task that was refused, with all that its result file takes.
type refusedTask struct {
	row task.Task
	run *run // has the result and the callback; nothing was run
}

const (
	mostShowing = 64   // refusals whose results are put at once: they share the commits that mark them
	mostInHand  = 1024 // refusals that are kept in memory until then; of others the ledger is asked
)

// refuse remembers what there is to show of a task, if there is room. Whoever
// refuses one says so before that is committed; see follow.
func (s *runSet) refuse(row task.Task, result []byte, callback envelope.Callback) {
	r := &run{item: schedule.Item{Seq: row.Seq}}
	r.result.Store(&result)
	r.callback.Store(&callback)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < mostInHand {
		s.refused[row.Seq] = refusedTask{row, r}
	}
}

// refusal returns a task that refuse remembers, if it does.
func (s *runSet) refusal(seq int64) (task.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.refused[seq]
	return t.row, ok
}

// forgetRefusal lets go of a task that refuse may remember.
func (s *runSet) forgetRefusal(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, seq)
}

// A draft is the result with which a turn is about to end its task, written and
// synced while the ledger takes that in: each is a wait for the disk. It has its
// name only once the ledger has its bytes, and is nothing when it does not get it.
type draft struct {
	result []byte
	file   *mailbox.Draft // nil: it could not be written
}

// of returns the file that has a result already; nil when there is none.
func (f *draft) of(result []byte) *mailbox.Draft {
	if f == nil || !bytes.Equal(f.result, result) {
		return nil
	}
	return f.file
}

// drop lets go of a draft that was not put.
func (f *draft) drop() {
	if f != nil && f.file != nil {
		f.file.Drop()
	}
}
