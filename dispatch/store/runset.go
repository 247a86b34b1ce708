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
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/mailbox"
)

// A CancelError is the cause of a run that ends because it was cancelled.
type CancelError struct{ By core.By }

// Error names who cancelled the run.
func (e *CancelError) Error() string { return "cancelled by " + e.By.String() }

// A Run is a current run of an agent, or one that is about to start.
type Run struct {
	Item          schedule.Item
	Ctx           context.Context // of the agent function, during its call
	End           context.CancelCauseFunc
	Began         atomic.Bool // the agent may have requested something
	Stopped       atomic.Bool // no caller waits for the cancellation of its task
	meter         meter
	over          chan struct{} // closed when the run is finished
	stopFollowing func() bool   // ends the link to the context of CancelWith; nil: no link

	publication
}

// A publication is what the publisher needs for the result of a run's task.
type publication struct {
	Callback         atomic.Pointer[envelope.Callback] // the callback that its task asks for; nil: the request was not read here
	Result           atomic.Pointer[[]byte]            // the result of its task; nil: the run has not ended the task
	Draft            atomic.Pointer[Draft]             // the draft of that result; nil: none
	Published        atomic.Bool                       // a goroutine publishes the result, or has done so
	NeedsApproval    atomic.Pointer[task.Task]         // its task, when the answer needs an approval; nil: it does not
	MayHaveSuccessor atomic.Bool                       // a later revision may exist: only the ledger knows
}

// Stop ends a run for a caller that does not wait for the end of its task. It reports false
// when the run was over.
func (r *Run) Stop(by core.By) bool {
	r.Stopped.Store(true)
	r.End(&CancelError{by})
	return !errors.Is(context.Cause(r.Ctx), context.Canceled) // the cause that Finish sets
}

// Cancelled returns the cause of the run's end, if the run was cancelled.
func (r *Run) Cancelled() (*CancelError, bool) {
	return errors.AsType[*CancelError](context.Cause(r.Ctx))
}

// Conclude changes the outcome of a run to cancelled when a cancellation cut the run short. A
// run that ended by itself before keeps its outcome.
func (r *Run) Conclude(o task.Outcome) task.Outcome {
	if cause := r.meter.excess(); cause != "" {
		o.Result.Review.Ask(cause)
	}
	cause, cancelled := r.Cancelled()
	if !cancelled || o.Detached || o.Unread != nil || o.Exit.Cause != task.CauseInterrupted && o.Result.Error.Kind != envelope.RunLost {
		return o
	}
	o.Retry = false
	o.Result.Status = envelope.Stopped
	o.Result.Error = envelope.Error{Kind: envelope.Cancelled, Message: cause.Error()}
	return o
}

// NeverBegun returns the outcome of a cancelled run that started no process, so that it does
// not start later; false for a run that was not cancelled.
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

// HasFinalResult reports whether the result of the run can be published from memory, without
// the ledger.
func (r *Run) HasFinalResult() bool { return r.Callback.Load() != nil && !r.MayHaveSuccessor.Load() }

// RunSet knows the current runs, so that callers can end or await them.
type RunSet struct {
	mu      sync.Mutex            // guards the fields below
	all     map[int64][]*Run      // by task: one, or for a moment also the next
	refused map[int64]refusedTask // refused tasks whose results are not put yet
}

func newRunSet() *RunSet {
	return &RunSet{all: map[int64][]*Run{}, refused: map[int64]refusedTask{}}
}

// Begin adds a run. Finish removes it.
func (s *RunSet) Begin(ctx context.Context, it schedule.Item) *Run {
	r := &Run{Item: it, over: make(chan struct{})}
	r.Ctx, r.End = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[it.Seq] = append(s.all[it.Seq], r)
	return r
}

// CancelWith ends a run with ctx, which the run did not begin with.
func (r *Run) CancelWith(ctx context.Context) {
	r.stopFollowing = context.AfterFunc(ctx, func() { r.End(context.Cause(ctx)) })
}

// Finish removes a run that has done all its work.
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

// NeedingApproval returns the running tasks whose answers need an approval.
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

// MarkSuccessor records that a later revision of a task may have been accepted. It is called
// before the commit.
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

// SetResult records the result with which the run of a task ends the task. The result is
// durable when the caller's transaction is. nil says that the run does not end the task.
func (s *RunSet) SetResult(seq int64, result []byte) {
	stored := &result
	if result == nil {
		stored = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all[seq] {
		r.Result.Store(stored)
	}
}

// WithResult returns the run that has just ended a task, or the placeholder run of a refused
// task. It returns nil unless the result can be published from memory.
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

// A refusedTask is a refused task with the content of its result file.
type refusedTask struct {
	row task.Task
	run *Run // holds the result and the callback; no agent ran
}

// MaxPublishing and maxKeptRefusals limit the refusals in memory.
const (
	MaxPublishing   = 64   // refusals whose results are put at once: they share the commits of their marks
	maxKeptRefusals = 1024 // refusals kept in memory until then; the others are read from the ledger
)

// Refuse keeps what the publisher needs for a refused task, if there is room. It is called
// before the refusal is committed.
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

// Refusal returns a task that Refuse has kept.
func (s *RunSet) Refusal(seq int64) (task.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.refused[seq]
	return t.row, ok
}

// ForgetRefusal removes a task that Refuse may have kept.
func (s *RunSet) ForgetRefusal(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, seq)
}

// A Draft is the result file of a task that is about to end. It is written and synced while the
// ledger commits the end, because each step waits for the disk. It gets its name only after the
// commit, and is dropped otherwise.
type Draft struct {
	Result []byte
	File   *mailbox.Draft // nil: it could not be written
}

// Of returns the draft file of a result; nil when the draft has other content, or there is
// none.
func (f *Draft) Of(result []byte) *mailbox.Draft {
	if f == nil || !bytes.Equal(f.Result, result) {
		return nil
	}
	return f.File
}

// Drop removes a draft that was not put.
func (f *Draft) Drop() {
	if f != nil && f.File != nil {
		f.File.Drop()
	}
}
