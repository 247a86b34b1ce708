// Package dispatch takes each task line from the mailbox to its one final
// result. What it has accepted it never loses, and it starts nothing before
// the ledger says so.
package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mailboxd/internal/retention"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/mailbox"
)

// A Dispatcher is the engine of one mailbox. Open makes it, Serve works it,
// Close ends it once nobody calls it any more.
type Dispatcher struct {
	*base
	completion *completion
	overseer   *overseer
	placed     *placedResults
	executor   *executor
	intake     *intake
	inbox      *inboxes
	kin        *kin
	unshown    *schedule.DeliveryQueue // tasks that were refused and whose results are still to be put
	failed     chan struct{}           // signalled when a look could not take everything in
	ready      chan struct{}           // closed when recovery is over
	looking    sync.Mutex              // one look at a time: guards the intake
}

// Open makes a Dispatcher that goes on where the ledger says the last one
// stopped. Nothing happens before Serve.
func Open(ctx context.Context, parts Parts, agents Agents, opts Options) (*Dispatcher, error) {
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
	agents.Protocol = agents.Protocol.filled()
	if agents.ApprovalTTL == nil {
		agents.ApprovalTTL = func() time.Duration { return 0 }
	}
	lost, err := parts.Ledger.Lost(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dispatcher: %w", err)
	}
	all := newShared(parts, agents, opts)
	all.pauses = newPauses(paused)
	d := newDispatcher(all, lost)
	opts.Tail.Notice = d.faults.reportFile
	d.intake.tail = parts.Box.Tail(cursors, opts.Tail)
	return d, nil
}

// Serve recovers what an earlier daemon left, then works until ctx ends.
// Stopping has two steps: from the end of ctx no task is begun, and after the
// grace what still runs is cut short. It returns nil when ctx ended.
func (d *Dispatcher) Serve(ctx context.Context) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	if err := d.recover(work); err != nil {
		d.executor.finishing.Close()
		return fmt.Errorf("recover: %w", err)
	}
	d.intake.deadLettersAdded() // by an earlier daemon
	d.queue.AddBusy()           // until keepResults has gone through them
	close(d.ready)
	var running sync.WaitGroup
	for range (1 + schedule.PrefetchPerSlot) * d.opts.Workers { // so many run, and others get ready
		running.Go(func() { d.executor.worker(ctx, work) })
	}
	running.Go(func() { d.inbox.deliverAll(ctx, work) })
	running.Go(func() { d.showRefusals(ctx, work) })
	running.Go(func() { d.messenger.notifyAll(ctx, work) })
	running.Go(func() { d.intake.appendDeadLetters(ctx, work) })
	running.Go(func() {
		d.timers.Serve(ctx, func(seq int64) {
			d.revisit(work, seq)
			d.lookedAt(work, seq)
		})
	})
	running.Go(func() { d.lookWhenThereIsRoom(ctx) })
	running.Go(func() { d.publisher.keepResults(ctx) })
	running.Go(func() { retention.Collector(d.Parts).ServeDaily(ctx, d.opts.Retention, d.opts.Log) })
	<-ctx.Done() // from here: take no more, finish what runs
	if d.opts.Detach {
		stopWork(runner.ErrDetach)
	}
	grace := time.AfterFunc(d.opts.Grace, func() { stopWork(ErrShutdown) })
	defer grace.Stop()
	running.Wait()
	d.executor.finishing.Close()
	d.executor.finishing.Wait()
	return nil
}

// Ready is closed when recovery is over and new tasks are taken.
func (d *Dispatcher) Ready() <-chan struct{} { return d.ready }

// Close lets go of the task files.
func (d *Dispatcher) Close() error { return d.intake.tail.Close() }

// Idle blocks until nothing is queued, running, being finished or resting
// before another attempt, no result is missing, and nothing is left to tell or
// to post, or ctx ends. Tasks that
// wait for somebody else do not count.
func (d *Dispatcher) Idle(ctx context.Context) error { return d.queue.WaitIdle(ctx) }

// Faults returns what does not work now and concerns more than one task, or a task
// file, oldest first. It may be called at any time, from any goroutine.
func (d *Dispatcher) Faults() []Fault { return d.faults.shared() }

// newDispatcher makes all components and hands them to each other. Each knows only those
// that are made before it.
func newDispatcher(s *shared, lost bool) *Dispatcher {
	kin, endings := newKin(), make(chan struct{}, 4*s.opts.Workers+64)
	b := newBase(s, kin, endings)
	acceptor := &acceptor{base: b, lost: lost}
	delegator := &delegator{base: b, acceptor: acceptor}
	overseer := &overseer{base: b, delegator: delegator}
	completion := &completion{base: b, delegator: delegator, overseer: overseer, kin: kin}
	placed := &placedResults{base: b, completion: completion}
	receiver := &receiver{base: b, acceptor: acceptor, delegator: delegator, completion: completion}
	waits := newBudgetWaiters(s.Ledger.Balance, func(seq int64) { s.timers.After(seq, 0) })
	fresh := newFresh()
	ex := &executor{
		base: b, acceptor: acceptor, completion: completion, placed: placed, endings: endings,
		finishing: schedule.NewWorkerPool(s.opts.Workers), fresh: fresh, rereading: usualRereading, waits: waits,
	}
	in := &intake{
		base: b, acceptor: acceptor, receiver: receiver, executor: ex, deadLetters: make(chan struct{}, 1), fresh: fresh,
	}
	d := &Dispatcher{
		base: b, completion: completion, overseer: overseer, placed: placed, executor: ex, intake: in,
		inbox: &inboxes{base: b, placed: placed, executor: ex, inboxes: schedule.NewDeliveryQueue(), waits: waits},
		kin:   kin, unshown: schedule.NewDeliveryQueue(), failed: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	b.writer.onCommitted = d.onCommitted
	return d
}
