// Package dispatch takes each task line from the mailbox to its one final
// result. What it has accepted it never loses, and it starts nothing before
// the ledger says so.
package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/intake"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/internal/retention"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/mailbox"
)

// A Dispatcher is the engine of one mailbox. Open makes it, Serve works it,
// Close ends it once nobody calls it any more.
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
	failed   chan struct{} // signalled when a look could not take everything in
	looking  sync.Mutex    // one look at a time: guards the intake
}

// Open makes a Dispatcher that goes on where the ledger says the last one
// stopped. Nothing happens before Serve.
func Open(ctx context.Context, parts store.Parts, agents store.Agents, opts store.Options) (*Dispatcher, error) {
	files, err := parts.Ledger.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dispatcher: %w", err)
	}
	cursors := make([]mailbox.Cursor, len(files))
	for i, f := range files {
		cursors[i] = mailbox.Cursor(f)
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
	all := store.NewShared(parts, agents, opts)
	all.Pauses = store.NewPauses(paused)
	d := newDispatcher(all, lost)
	opts.Tail.Notice = d.FaultLog.ReportFile
	d.intake.Tail = parts.Box.Tail(cursors, opts.Tail)
	return d, nil
}

// Serve recovers what an earlier daemon left, then works until ctx ends.
// Stopping has two steps: from the end of ctx no task is begun, and after the
// grace what still runs is cut short. It returns nil when ctx ended.
func (d *Dispatcher) Serve(ctx context.Context) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	if err := d.recovery.recover(work); err != nil {
		d.executor.Finishing.Close()
		return fmt.Errorf("recover: %w", err)
	}
	d.intake.DeadLettersAdded() // by an earlier daemon
	d.Queue.AddBusy()           // until KeepResults has gone through them
	close(d.ready)
	var running sync.WaitGroup
	for range (1 + schedule.PrefetchPerSlot) * d.Opts.Workers { // so many run, and others get ready
		running.Go(func() { d.executor.Worker(ctx, work) })
	}
	running.Go(func() { d.inbox.deliverAll(ctx, work) })
	running.Go(func() { d.steps.showRefusals(ctx, work) })
	running.Go(func() { d.Messenger.NotifyAll(ctx, work) })
	running.Go(func() { d.intake.AppendDeadLetters(ctx, work) })
	running.Go(func() { d.reevaluateDue(ctx, work) })
	running.Go(func() { d.lookWhenThereIsRoom(ctx) })
	running.Go(func() { d.Publisher.KeepResults(ctx) })
	running.Go(func() { retention.Collector(d.Parts).ServeDaily(ctx, d.Opts.Retention, d.Opts.Log) })
	<-ctx.Done() // from here: take no more, finish what runs
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

// mostDue is how many tasks are reevaluated at the same time. One whose callback hangs
// keeps no other from its deadline.
const mostDue = 64

// reevaluateDue looks at each task whose time has come, until ctx ends. It looks at one
// task once at a time.
func (d *Dispatcher) reevaluateDue(ctx, work context.Context) {
	var looking sync.Map // by Seq
	slots := make(chan struct{}, mostDue)
	d.Timers.Serve(ctx, func(seq int64) {
		if _, already := looking.LoadOrStore(seq, true); already {
			d.Timers.After(seq, store.RetryPause)
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		d.executor.Finishing.Go(func() {
			defer func() { <-slots }()
			defer looking.Delete(seq)
			d.reevaluate(work, seq)
			d.reevaluated(work, seq)
		})
	})
}

// Close lets go of the task files.
func (d *Dispatcher) Close() error { return d.intake.Tail.Close() }

// Idle blocks until nothing is queued, running, being finished or resting
// before another attempt, no result is missing, and nothing is left to notify or
// to deliver, or ctx ends. Tasks that
// wait for somebody else do not count.
func (d *Dispatcher) Idle(ctx context.Context) error { return d.Queue.WaitIdle(ctx) }

// Faults returns what does not work now and concerns more than one task, or a task
// file, oldest first. It may be called at any time, from any goroutine.
func (d *Dispatcher) Faults() []store.Fault { return d.FaultLog.Shared() }

// newDispatcher makes all components and hands them to each other. Each knows only those
// that are made before it.
func newDispatcher(s *store.Shared, lost bool) *Dispatcher {
	dependents, endings := outbox.NewDependents(), make(chan struct{}, 4*s.Opts.Workers+64)
	b := outbox.NewBase(s, dependents, endings)
	acceptor := &exchange.Acceptor{Base: b, Lost: lost}
	delegator := &exchange.Delegator{Base: b, Acceptor: acceptor}
	overseer := &exchange.Overseer{Base: b, Delegator: delegator}
	completer := &exchange.Completer{Base: b, Delegator: delegator, Overseer: overseer, Dependents: dependents}
	placed := &exchange.PlacedResults{Base: b, Completer: completer}
	receiver := &exchange.Receiver{Base: b, Acceptor: acceptor, Delegator: delegator, Completer: completer}
	waits := executor.NewBudgetWaiters(s.Ledger.Balance, func(seq int64) { s.Timers.After(seq, 0) })
	fresh := executor.NewFreshTasks()
	ex := &executor.Executor{
		Preparer:  &executor.Preparer{Base: b, Acceptor: acceptor, Placed: placed, Fresh: fresh, Waits: waits},
		Completer: completer, Endings: endings,
		Finishing: schedule.NewWorkerPool(s.Opts.Workers), Rereading: executor.DefaultRereading,
	}
	in := &intake.Intake{
		Base: b, Acceptor: acceptor, Receiver: receiver, Executor: ex, DeadLetters: make(chan struct{}, 1), Fresh: fresh,
	}
	inbox := &inboxes{Base: b, placed: placed, executor: ex, deliveries: schedule.NewDeliveryQueue(), waits: waits}
	st := &steps{
		Base: b, completer: completer, overseer: overseer, placed: placed, executor: ex, inbox: inbox,
		dependents: dependents, unshown: schedule.NewDeliveryQueue(),
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

// A readiness lets callers wait until recovery is over.
type readiness struct {
	ready chan struct{} // closed then
}

// Ready is closed when recovery is over and new tasks are taken.
func (r *readiness) Ready() <-chan struct{} { return r.ready }

// whenReady blocks until recovery is over, or returns the cause of ctx.
func (r *readiness) whenReady(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Look takes in what is new in the mailbox: task lines, and results that
// somebody else placed. Events are hints, so it may be called at any time and
// from several goroutines. What it cannot do is logged once and tried again
// by the next look. It waits until Serve has recovered what was left over. It
// reports whether there may be more, because the queue is full; Serve looks
// again by itself when it has room. The error is logged already; it is for a caller
// that looks once.
func (d *Dispatcher) Look(ctx context.Context) (paused bool, err error) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return false, nil
	}
	d.looking.Lock()
	defer d.looking.Unlock()
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
		default: // it will be looked at anyway
		}
	}
	return paused, err
}

// Unread reports whether a run has ended since the last look, so that what its
// agent asked for may lie there. It is for a caller that looks once.
func (d *Dispatcher) Unread() bool { return d.RecentRuns.Any() }

// lookWhenThereIsRoom goes on with intake that paused at a full queue, or that
// something kept from going on.
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
