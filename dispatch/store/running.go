package store

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

// Error names who cancelled the run.
func (e *CancelError) Error() string { return "cancelled by " + e.By.String() }

// A Run is something an agent does now, or is about to.
type Run struct {
	Item          schedule.Item
	Ctx           context.Context // of the agent function, for as long as it is called
	End           context.CancelCauseFunc
	Began         atomic.Bool // it may have asked for something
	Stopped       atomic.Bool // nobody waits to see its task cancelled
	meter         meter
	over          chan struct{} // closed when nothing more will come of it
	stopFollowing func() bool   // stops the link to the context of CancelWith; nil: there is none

	publication
}

// An ending is what there is to show of the task of a run.
type publication struct {
	Callback         atomic.Pointer[envelope.Callback] // what its task asks for; nil: nobody has read that here
	Result           atomic.Pointer[[]byte]            // what its task has ended with; nil: it has not
	Draft            atomic.Pointer[Draft]             // of that; nil: there is none
	Published        atomic.Bool                       // somebody shows that, or has
	NeedsApproval    atomic.Pointer[task.Task]         // its task, when the answer needs an approval; nil: it does not
	MayHaveSuccessor atomic.Bool                       // a later revision may be there: only the ledger knows
}

// Stop ends a run for somebody who does not wait for what becomes of its task. It
// reports false when the run was over.
func (r *Run) Stop(by core.By) bool {
	r.Stopped.Store(true)
	r.End(&CancelError{by})
	return !errors.Is(context.Cause(r.Ctx), context.Canceled) // which is what finish says
}

// Cancelled returns with what the run was ended, if somebody cancelled it.
func (r *Run) Cancelled() (*CancelError, bool) {
	return errors.AsType[*CancelError](context.Cause(r.Ctx))
}

// Conclude makes a run that was cut short because somebody cancelled it end as
// cancelled. One that came to an end of its own before that keeps it.
func (r *Run) Conclude(o task.Outcome) task.Outcome {
	if why := r.meter.excess(); why != "" {
		o.Result.Review.Ask(why)
	}
	why, cancelled := r.Cancelled()
	if !cancelled || o.Detached || o.Unread != nil || o.Exit.Cause != task.CauseInterrupted && o.Result.Error.Kind != envelope.RunLost {
		return o
	}
	o.Retry = false
	o.Result.Status = envelope.Stopped
	o.Result.Error = envelope.Error{Kind: envelope.Cancelled, Message: why.Error()}
	return o
}

// NeverBegun is the outcome of a run that was cancelled, if it was, and of which
// nothing was started: it is not to be begun later.
func (r *Run) NeverBegun(j task.Job) (o task.Outcome, cancelled bool) {
	why, cancelled := r.Cancelled()
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

// HasFinalResult reports whether what the run ends with is shown as it is in hand,
// and not as the ledger has it.
func (r *Run) HasFinalResult() bool { return r.Callback.Load() != nil && !r.MayHaveSuccessor.Load() }

// RunSet knows what runs now, so that somebody can end or await it.
type RunSet struct {
	mu      sync.Mutex            // guards what follows
	all     map[int64][]*Run      // by task: one, or for a moment the next as well
	refused map[int64]refusedTask // those whose result is not put yet
}

func newRunSet() *RunSet {
	return &RunSet{all: map[int64][]*Run{}, refused: map[int64]refusedTask{}}
}

// Begin makes a run known until Finish is called for it.
func (s *RunSet) Begin(ctx context.Context, it schedule.Item) *Run {
	r := &Run{Item: it, over: make(chan struct{})}
	r.Ctx, r.End = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[it.Seq] = append(s.all[it.Seq], r)
	return r
}

// CancelWith has a run that was begun elsewhere end with ctx.
func (r *Run) CancelWith(ctx context.Context) {
	r.stopFollowing = context.AfterFunc(ctx, func() { r.End(context.Cause(ctx)) })
}

// Finish says that nothing more will come of a run.
func (s *RunSet) Finish(r *Run) {
	if r.stopFollowing != nil {
		r.stopFollowing()
	}
	r.End(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.all[r.Item.Seq], func(other *Run) bool { return other == r })
	if s.all[r.Item.Seq] = left; len(left) == 0 {
		delete(s.all, r.Item.Seq)
	}
	close(r.over)
}

// Of returns the runs of a task.
func (s *RunSet) Of(seq int64) []*Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[seq])
}

// Find returns the runs that match.
func (s *RunSet) Find(match func(schedule.Item) bool) (found []*Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.all {
		for _, r := range runs {
			if match(r.Item) {
				found = append(found, r)
			}
		}
	}
	return found
}

// NeedingApproval returns the tasks that run now and whose answers need an approval.
func (s *RunSet) NeedingApproval() (rows []task.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.all {
		for _, r := range runs {
			if row := r.NeedsApproval.Load(); row != nil {
				rows = append(rows, *row)
			}
		}
	}
	return rows
}

// NeedsApproval reports whether a task runs now and its answer needs an approval.
func (s *RunSet) NeedsApproval(seq int64) bool {
	return slices.ContainsFunc(s.Of(seq), func(r *Run) bool { return r.NeedsApproval.Load() != nil })
}

// MarkSuccessor says that a later revision of a task may have been accepted. It is
// called before that is committed.
func (s *RunSet) MarkSuccessor(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		r.MayHaveSuccessor.Store(true)
	}
	if t, ok := s.refused[seq]; ok {
		t.run.MayHaveSuccessor.Store(true)
	}
}

// SetResult says that the run of a task ends it, with a result that is durable when
// the transaction is that says so. A nil one says that it does not.
func (s *RunSet) SetResult(seq int64, result []byte) {
	said := &result
	if result == nil {
		said = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		r.Result.Store(said)
	}
}

// WithResult returns the run that has just ended a task, or stands for one of a task
// that was refused, if all there is to show of that is in hand.
func (s *RunSet) WithResult(seq int64) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		if r.Callback.Load() != nil && r.Result.Load() != nil {
			return r
		}
	}
	return s.refused[seq].run
}

// Await blocks until the runs are over, or ctx ends.
func Await(ctx context.Context, runs []*Run) error {
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
	run *Run // has the result and the callback; nothing was run
}

// MaxPublishing and maxKeptRefusals bound what is kept of refusals.
const (
	MaxPublishing   = 64   // refusals whose results are put at once: they share the commits that mark them
	maxKeptRefusals = 1024 // refusals that are kept in memory until then; of others the ledger is asked
)

// Refuse remembers what there is to show of a task, if there is room. It is called
// before the refusal is committed; see Follow.
func (s *RunSet) Refuse(row task.Task, result []byte, callback envelope.Callback) {
	r := &Run{Item: schedule.Item{Seq: row.Seq}}
	r.Result.Store(&result)
	r.Callback.Store(&callback)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < maxKeptRefusals {
		s.refused[row.Seq] = refusedTask{row, r}
	}
}

// Refusal returns a task that Refuse remembers, if it does.
func (s *RunSet) Refusal(seq int64) (task.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.refused[seq]
	return t.row, ok
}

// ForgetRefusal lets go of a task that Refuse may remember.
func (s *RunSet) ForgetRefusal(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, seq)
}

// A Draft is the result with which a completion is about to end its task, written and
// synced while the ledger takes that in: each is a wait for the disk. It has its
// name only once the ledger has its bytes, and is nothing when it does not get it.
type Draft struct {
	Result []byte
	File   *mailbox.Draft // nil: it could not be written
}

// Of returns the file that has a result already; nil when there is none.
func (f *Draft) Of(result []byte) *mailbox.Draft {
	if f == nil || !bytes.Equal(f.Result, result) {
		return nil
	}
	return f.File
}

// Drop lets go of a draft that was not put.
func (f *Draft) Drop() {
	if f != nil && f.File != nil {
		f.File.Drop()
	}
}
