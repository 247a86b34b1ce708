// Package dispatch takes each task line from the mailbox to its one final result. It never
// loses an accepted task, and it starts no run before the ledger has recorded it.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/intake"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/retention"
	"mailboxd/mailbox"
)

// A Dispatcher is the engine of one mailbox. Open makes it, Serve runs it, Close releases its
// files after the last call.
type Dispatcher struct {
	*outbox.Base
	*readiness
	*steps
	*approvals
	*leases
	*controls
	recovery *recovery
	executor *executor.Executor
	intake   *intake.Intake
	inbox    *inboxes
	failed   chan struct{} // signalled when a look could not read everything
	lookMu   sync.Mutex    // allows one look at a time: guards the intake
}

// Open makes a Dispatcher that continues from the state in the ledger. Nothing happens before
// Serve.
func Open(ctx context.Context, parts store.Parts, agents store.Agents, opts store.Options) (*Dispatcher, error) {
	files, err := parts.Ledger.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dispatcher: %w", err)
	}
	var cursors, ofRuns []mailbox.Cursor
	for _, f := range files {
		if c := mailbox.Cursor(f); c.IsRunFile() {
			ofRuns = append(ofRuns, c)
		} else {
			cursors = append(cursors, c)
		}
	}
	paused, err := parts.Ledger.Paused(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dispatcher: %w", err)
	}
	agents.Protocol = agents.Protocol.WithDefaults()
	if agents.ApprovalTTL == nil {
		agents.ApprovalTTL = func() time.Duration { return 0 }
	}
	lost, err := parts.Ledger.Lost(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dispatcher: %w", err)
	}
	shared := store.NewShared(parts, agents, opts)
	shared.Pauses = store.NewPauses(paused)
	d := newDispatcher(shared, lost)
	shared.Pauses.Presence.Changed = d.steps.router.wake
	shared.Queue.Released = d.steps.router.wake
	opts.Tail.Notice = d.FaultLog.ReportFile
	d.intake.Tail = parts.Box.Tail(cursors, opts.Tail)
	d.intake.RunFiles = intake.NewRunFiles(parts.State.RunTail(ofRuns, opts.Tail))
	return d, nil
}

// Serve recovers the state that an earlier daemon left, then works until ctx ends. It stops in
// two steps: when ctx ends it starts no task any more, and after the grace period it cuts the
// remaining runs short. It returns nil when ctx ended.
func (d *Dispatcher) Serve(ctx context.Context) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	if err := d.recovery.recover(work); err != nil {
		d.executor.Finishing.Close()
		return fmt.Errorf("recover: %w", err)
	}
	d.intake.DeadLettersAdded() // an earlier daemon may have added some
	d.Queue.AddBusy()           // until KeepResults has checked all results
	close(d.ready)
	var running sync.WaitGroup
	for range workersPerSlot * d.Opts.Workers {
		running.Go(func() { d.executor.Worker(ctx, work) })
	}
	running.Go(func() { d.inbox.deliverAll(ctx, work) })
	running.Go(func() { d.steps.publishRefusals(ctx, work) })
	running.Go(func() { d.steps.router.serve(ctx, work) })
	running.Go(func() { d.Messenger.NotifyAll(ctx, work) })
	running.Go(func() { d.intake.AppendDeadLetters(ctx, work) })
	running.Go(func() { d.reevaluateDue(ctx, work) })
	running.Go(func() { d.lookWhenThereIsRoom(ctx) })
	running.Go(func() { d.Publisher.KeepResults(ctx) })
	running.Go(func() {
		retention.ServeDaily(ctx, d.Opts.Log, func(ctx context.Context) (retention.Collected, error) { return d.Collect(ctx, false) })
	})
	<-ctx.Done() // from here: start nothing, finish the runs
	if d.Opts.Detach {
		stopWork(runner.ErrDetach)
	}
	grace := time.AfterFunc(d.Opts.Grace, func() { stopWork(store.ErrShutdown) })
	defer grace.Stop()
	running.Wait()
	d.executor.Finishing.Close()
	d.executor.Finishing.Wait()
	return nil
}

// workersPerSlot is the number of workers for each slot. A worker without a slot waits after a
// fault, holds tasks of a paused agent, or lets earlier ends become durable.
const workersPerSlot = 4

// maxDue is how many tasks are reevaluated at the same time. A callback that hangs must not
// delay the deadlines of other tasks.
const maxDue = 64

// reevaluateDue reevaluates each task that is due, until ctx ends. It never
// reevaluates one task twice at the same time, since a second call of its callback may hang too.
func (d *Dispatcher) reevaluateDue(ctx, work context.Context) {
	var inProgress sync.Map // by Seq
	slots := make(chan struct{}, maxDue)
	d.Timers.Serve(ctx, d.dueRows, func(seq int64, now bool) {
		if _, busy := inProgress.LoadOrStore(seq, true); busy {
			d.again(seq, now)
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		d.executor.Finishing.Go(func() {
			defer func() { <-slots }()
			defer d.checked(now)
			defer inProgress.Delete(seq)
			d.reevaluate(work, seq)
		})
	})
}

// dueRows is ledger.Reader.DueTasks, and reports its faults.
func (d *Dispatcher) dueRows(ctx context.Context, after task.Look, limit int) ([]task.Look, error) {
	rows, err := d.Ledger.DueTasks(ctx, after, limit)
	if err != nil && ctx.Err() == nil {
		d.FaultLog.Report(store.Judging, task.Task{}, err)
	}
	return rows, err
}

// again has a task checked after a pause, since it is being checked just now.
func (d *Dispatcher) again(seq int64, now bool) {
	if !now {
		d.Timers.After(seq, store.RetryPause)
		return
	}
	time.AfterFunc(store.RetryPause, func() {
		d.Timers.Now(seq)
		d.Queue.Done()
	})
}

// checked ends what a timer of Now counts as busy.
func (d *Dispatcher) checked(now bool) {
	if now {
		d.Queue.Done()
	}
}

// Close closes the task files.
func (d *Dispatcher) Close() error {
	return errors.Join(d.intake.Tail.Close(), d.intake.RunFiles.Tail.Close())
}

// Idle blocks until ctx ends, or until no task is queued, running, finishing or in backoff, no
// result is missing, and no notification or delivery is due. Tasks that wait for an agent, a person, a
// message or budget do not count: a run that may leave some of it is running.
func (d *Dispatcher) Idle(ctx context.Context) error { return d.Queue.WaitIdle(ctx) }

// Faults returns the current faults that concern more than one task, or a task file, oldest
// first. It is safe for concurrent use.
func (d *Dispatcher) Faults() []store.Fault { return d.FaultLog.Shared() }

// newDispatcher makes all components and connects them. Each component knows only the
// components that are made before it.
func newDispatcher(s *store.Shared, lost bool) *Dispatcher {
	endings := make(chan struct{}, 4*s.Opts.Workers+64)
	b := outbox.NewBase(s, endings)
	acceptor := &exchange.Acceptor{Base: b, Lost: lost}
	delegator := &exchange.Delegator{Base: b, Acceptor: acceptor}
	overseer := &exchange.Overseer{Base: b, Delegator: delegator}
	completer := &exchange.Completer{Base: b, Delegator: delegator, Overseer: overseer}
	placed := &exchange.PlacedResults{Base: b, Completer: completer}
	receiver := &exchange.Receiver{Base: b, Acceptor: acceptor, Delegator: delegator, Completer: completer}
	fresh := executor.NewFreshTasks()
	ex := &executor.Executor{
		Preparer:  &executor.Preparer{Base: b, Acceptor: acceptor, Placed: placed, Fresh: fresh},
		Completer: completer, Endings: endings,
		Finishing: schedule.NewWorkerPool(s.Opts.Workers), Rereading: executor.DefaultRereading,
	}
	in := &intake.Intake{
		Base: b, Acceptor: acceptor, Receiver: receiver, Executor: ex, DeadLetters: make(chan struct{}, 1), Fresh: fresh,
	}
	inbox := &inboxes{Base: b, placed: placed, executor: ex, deliveries: schedule.NewDutyQueue(s.Queue)}
	st := &steps{
		Base: b, completer: completer, overseer: overseer, placed: placed, executor: ex, inbox: inbox,
		unpublished: schedule.NewDutyQueue(s.Queue), router: newRouter(b, inbox),
	}
	b.Writer.OnCommitted = st.onCommitted
	ready := &readiness{ready: make(chan struct{})}
	return &Dispatcher{
		Base: b, readiness: ready, steps: st,
		approvals: &approvals{Base: b, readiness: ready, steps: st, placed: placed},
		leases:    &leases{Base: b, readiness: ready, steps: st, completer: completer, inbox: inbox},
		controls:  &controls{Base: b, readiness: ready, steps: st},
		recovery:  &recovery{Base: b, steps: st, completer: completer, executor: ex, inbox: inbox},
		executor:  ex, intake: in, inbox: inbox, failed: make(chan struct{}, 1),
	}
}

// A readiness lets callers wait until recovery is complete.
type readiness struct {
	ready chan struct{} // closed when recovery is complete
}

// Ready is closed when recovery is complete and new tasks are accepted.
func (r *readiness) Ready() <-chan struct{} { return r.ready }

// whenReady blocks until recovery is complete, or returns the cause of ctx.
func (r *readiness) whenReady(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Look reads what is new in the mailbox: task lines, and result files that other programs
// placed. File events are hints, so it may be called at any time and from several goroutines.
// It waits until Serve has recovered. It reports whether more lines may be left because the
// queue is full; Serve looks again by itself when the queue has room. A failure is logged once,
// and the next look tries again; the returned error is for a caller that looks only once.
func (d *Dispatcher) Look(ctx context.Context) (paused bool, err error) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return false, nil
	}
	d.lookMu.Lock()
	defer d.lookMu.Unlock()
	before := d.RecentRuns.Count()
	paused, err = d.intake.Look(ctx)
	d.steps.adoptPlaced(ctx)
	if err == nil && !paused {
		d.RecentRuns.Forget(before)
	}
	if ctx.Err() != nil {
		return paused, err
	}
	d.FaultLog.ReportIntake(err)
	if err != nil {
		select {
		case d.failed <- struct{}{}:
		default: // a signal is pending already
		}
	}
	return paused, err
}

// Unread reports whether a run has ended since the last look, so that requests of its agent may
// still be unread. It is for a caller that looks only once.
func (d *Dispatcher) Unread() bool { return d.RecentRuns.Any() }

// lookWhenThereIsRoom continues intake after it stopped at a full queue or a failure.
func (d *Dispatcher) lookWhenThereIsRoom(ctx context.Context) {
	var pause <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.failed:
			pause = time.After(store.RetryPause)
			continue
		case <-pause:
		case <-d.Queue.Room():
		}
		d.Look(ctx)
	}
}
