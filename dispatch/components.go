package dispatch

import (
	"context"
	"sync"
	"sync/atomic"

	"mailboxd/internal/schedule"
	"mailboxd/mailbox"
)

// What all components of the engine share.
type shared struct {
	Parts
	agents  Agents
	opts    Options
	faults  *faults
	timers  *schedule.Timers
	queue   *schedule.Queue
	runs    *runSet
	held    *heldSet
	pauses  *pauses
	names   *names // one result file is moved by one goroutine at a time
	bygones *bygones
	unused  *unusedDirs
}

// A base is what the upper components of the engine are built on.
type base struct {
	*shared
	writer    *writer
	reader    *reader
	meters    *meters
	history   *history
	messenger *messenger
	publisher *publisher
	canceller *canceller
}

// A writer changes tasks: it has the core decide, makes that durable, and has the next
// step taken.
type writer struct {
	*shared
	onCommitted func(context.Context, consequences)
}

// A reader reads tasks, and judges them.
type reader struct {
	*shared
	writer *writer
}

// The meters know what runs spend.
type meters struct {
	*shared
	writer *writer
}

// A history returns what was said about a task.
type history struct {
	*shared
	marks sync.Map // of historyMark, by the Seq of an open task
}

// A messenger records the messages of the daemon and its agents, notifies requesters, and
// delivers what is due to inboxes.
type messenger struct {
	*shared
	writer      *writer
	notifyQueue *notifyQueue
}

// A publisher puts results into place and makes callbacks.
type publisher struct {
	*shared
	writer  *writer
	reader  *reader
	calls   *calls
	endings chan struct{} // holds a token for each run that ended here and is not finished
	missing chan struct{} // signalled when result files may be missing
	roots   atomic.Int64  // how often the root directory was replaced
}

// A canceller cancels tasks, and those that end with them.
type canceller struct {
	*shared
	writer    *writer
	reader    *reader
	messenger *messenger
	kin       *kin
}

// An acceptor adds tasks, each as its verdict and its lineage have it.
type acceptor struct {
	*base
	lost bool // the ledger was lost, and not all lines of that time were met again
}

// A delegator records what agents say in their runs, and adds the tasks that they hand on.
type delegator struct {
	*base
	acceptor *acceptor
}

// An overseer has answers reviewed by the overseers of their agents.
type overseer struct {
	*base
	delegator *delegator
}

// A completion takes the outcome of a run to where that leads its task.
type completion struct {
	*base
	delegator *delegator
	overseer  *overseer
	kin       *kin
}

// The placedResults are result files that another program put into place.
type placedResults struct {
	*base
	completion *completion
}

// A receiver takes messages in.
type receiver struct {
	*base
	acceptor   *acceptor
	delegator  *delegator
	completion *completion
}

// An executor starts the runs of queued tasks, and takes up those of an earlier daemon.
type executor struct {
	*base
	acceptor   *acceptor
	completion *completion
	placed     *placedResults
	endings    chan struct{} // holds a token for each run that ended here and is not finished
	finishing  *schedule.WorkerPool
	fresh      *fresh
	rereading  rereading // how answers are read again
	waits      *budgetWaiters
}

// An intake takes lines in.
type intake struct {
	*base
	acceptor    *acceptor
	receiver    *receiver
	executor    *executor
	deadLetters chan struct{} // signalled when the ledger has dead letters for their file
	fresh       *fresh
	tail        *mailbox.Tail
}

// The inboxes have the tasks that agents fetch.
type inboxes struct {
	*base
	placed   *placedResults
	executor *executor
	inboxes  *schedule.DeliveryQueue // tasks to deliver to the inboxes of their agents
	waits    *budgetWaiters
}

// newShared makes what the components share, for an engine in which no agent is paused.
func newShared(parts Parts, agents Agents, opts Options) *shared {
	return &shared{
		Parts:   parts,
		agents:  agents,
		opts:    opts,
		faults:  newFaults(opts.Log),
		timers:  schedule.NewTimers(),
		queue:   schedule.NewQueue(opts.Workers, opts.Queue, opts.PerRequester, agents.Limit),
		runs:    newRunSet(),
		held:    newHeldSet(),
		pauses:  newPauses(nil),
		names:   newNames(),
		bygones: newBygones(),
		unused:  newUnusedDirs(),
	}
}

// newBase makes the lower components.
func newBase(s *shared, kin *kin, endings chan struct{}) *base {
	b := &base{shared: s, writer: &writer{shared: s}, history: &history{shared: s}}
	b.reader = &reader{shared: s, writer: b.writer}
	b.meters = &meters{shared: s, writer: b.writer}
	b.messenger = &messenger{shared: s, writer: b.writer, notifyQueue: newNotifyQueue()}
	b.publisher = &publisher{
		shared: s, writer: b.writer, reader: b.reader, calls: newCalls(), endings: endings, missing: make(chan struct{}, 1),
	}
	b.canceller = &canceller{shared: s, writer: b.writer, reader: b.reader, messenger: b.messenger, kin: kin}
	return b
}

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
	executor := &executor{
		base: b, acceptor: acceptor, completion: completion, placed: placed, endings: endings,
		finishing: schedule.NewWorkerPool(s.opts.Workers), fresh: fresh, rereading: usualRereading, waits: waits,
	}
	intake := &intake{
		base: b, acceptor: acceptor, receiver: receiver, executor: executor, deadLetters: make(chan struct{}, 1), fresh: fresh,
	}
	d := &Dispatcher{
		base: b, completion: completion, overseer: overseer, placed: placed, executor: executor, intake: intake,
		inbox: &inboxes{base: b, placed: placed, executor: executor, inboxes: schedule.NewDeliveryQueue(), waits: waits},
		kin:   kin, unshown: schedule.NewDeliveryQueue(), failed: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	b.writer.onCommitted = d.onCommitted
	return d
}
