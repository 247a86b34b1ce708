// Package dispatch takes each task line from the mailbox to its one final
// result. What it has accepted it never loses, and it starts nothing before
// the ledger says so.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/retention"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// ErrShutdown is the cause with which runs are cut short when the daemon stops.
var ErrShutdown = errors.New("the daemon is shutting down")

// Parts are the places a Dispatcher works on. It owns none of them: whoever
// opened them closes them, after Serve has returned.
type Parts struct {
	Box    *mailbox.Box
	State  *mailbox.State
	Ledger *ledger.Ledger
}

// Agents is how the engine meets policy and agents: as functions that are
// handed in. All must be set, and safe for concurrent use.
type Agents struct {
	Judge   func(t envelope.Task, now time.Time) task.Verdict
	Run     func(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome
	Recover func(ctx context.Context, j task.Job) task.Outcome // what becomes of a run that an earlier daemon started
	Forget  func(dir string)                                   // what became of the run in a directory is durable: nobody else need remember it; nil: nobody does
	Refs    func(agent string) RefRule                         // how the files that its tasks name are judged
	HasDir  func(agent string) bool                            // whether its runs have directories
	Limit   func(agent string) int                             // how many runs an agent may have at once
	Reruns  func(agent string) bool                            // whether an id that was executed may be sent again with other content
	Retries func(agent string) int                             // how many further attempts a run that asks for one gets
	Backoff func(agent string) time.Duration                   // the pause before the first of them; it doubles
	Known   func(agent string) bool                            // whether there is such an agent: it may be paused, and its requests are a run's
	Mode    func(envelope.Control) envelope.Mode               // how strictly a control is held that is ours: lineage

	// Inbox is where an agent fetches its tasks; Answer makes the outcome of a
	// job from what somebody said who fetched it, or says why that is no answer.
	Inbox  func(agent string) Inbox
	Answer func(j task.Job, said []byte, exit task.Exit) (task.Outcome, error)

	ApprovalTTL func() time.Duration // how long a question to a person, or what they said, stands; 0, or nil: for ever

	Protocol Protocol // how agents are spoken with, and speak with each other
}

// Options are the operator's choices.
type Options struct {
	Workers           int           // runs at once, over all agents
	PerRequester      int           // runs at once of one requester; 0: no limit
	Depth             int           // how many tasks may be above one that an agent asked for; 0: no agent may ask
	Children          int           // how many tasks the run of one may ask for
	Queue             int           // queued tasks at which intake pauses
	QueuePerRequester int           // tasks of one requester that are not over, at which they are refused more; 0: no limit
	Grace             time.Duration // how long runs may go on once Serve is told to stop
	Detach            bool          // or leave them to whoever hosts them, at once
	Retention         retention.Policy
	Reading           envelope.Reading
	RefRoots          []string // where files named by tasks may lie, beside the mailbox
	Tail              mailbox.TailOptions
	Log               zerolog.Logger // the zero value is silent
}

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
