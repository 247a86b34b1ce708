package owner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	process "mailboxd/internal/running/runner"
	"mailboxd/internal/stores/worktree"
	"mailboxd/internal/testtools/fault"
)

// A run is an assignment that the engine waits for.
type run struct {
	at         task.Assignment
	seq        int64
	job        task.Job
	idempotent bool
	done       chan task.Outcome // for one outcome
	began      chan struct{}

	// The mutex of the Owner guards the fields below.
	handed    bool      // its job was handed to the state machine
	sent      time.Time // when its job was sent; zero: it wasn't, or by an earlier daemon
	start     time.Time // since when it is known to have begun; zero: it isn't
	cancelled bool
	delivered bool // it has an outcome
	ended     bool // without an answer; one that comes now is fenced
	unreached bool // its runner can't be reached
	cost      envelope.Cost
	counting  bool                  // cost is being counted
	answer    func(fleet.DoneReply) // of its outcome, for when the end is durable; nil: none
	giveUp    func()                // stops bringing the files of its outcome; nil: none came
	follow    func()                // stops its live lines; nil: none come
	followed  time.Time             // when its runner was last told to send them

	settling sync.Mutex // one change of cost or reason at a time
	notes    sync.Mutex // one note at a time; guards lastNote
	lastNote int64

	bundle *worktree.Bundle // the commit that its job names; nil: none. Of the goroutine that sends or fetches
	source string           // the repository that has it

	objects map[objectAt]fleet.Object // bundle and artifacts at the hub
	keys    []string                  // of all objects that were sent
	try
}

// A try is what has come of an outcome. The runner sends one again that didn't come whole.
type try struct {
	got   []string // keys of its objects
	files []string // what it made in the directory of the run
	left  []string // what of it didn't come, and where it is, for people
}

func newRun(j task.Job, seq int64) *run {
	return &run{at: j.At, seq: seq, job: j, done: make(chan task.Outcome, 1), began: make(chan struct{})}
}

func (one *run) token() fleet.Token { return fleet.Token(one.at.Token) }

// sends notes an object that was sent.
func (one *run) sends(repository, digest string, object fleet.Object) {
	if one.objects == nil {
		one.objects = map[objectAt]fleet.Object{}
	}
	one.objects[objectAt{one.at.Runner, repository, digest}] = object
}

// leave notes what of an outcome doesn't come.
func (t *try) leave(what string) { t.left = append(t.left, what) }

// deliver gives a run its outcome. Only the first one counts. The caller holds the mutex of the Owner.
func (one *run) deliver(outcome task.Outcome) {
	if !one.delivered {
		one.delivered = true
		one.done <- outcome
	}
}

// hasBegun notes that the process of a run may exist. The caller holds the mutex of the Owner.
func (one *run) hasBegun(now time.Time) {
	if one.start.IsZero() {
		one.start = now
		close(one.began)
	}
}

// forget removes a run that the engine doesn't wait for any more. The caller holds mu.
func (o *Owner) forget(one *run) {
	if one.follow != nil {
		o.work.Go(one.follow) // it may wait for the connection
		one.follow = nil
	}
	delete(o.runs, one.token())
}

var (
	errVoided  = errors.New("the runner has not begun the run, and never will")
	errDropped = errors.New("the place of the run was given back")
)

// Run sends the job of a run that was assigned, and returns its outcome. Started is called once its runner says
// that it has begun. When the daemon stops the run goes on; any other end of ctx cancels it.
func (o *Owner) Run(ctx context.Context, j task.Job, started func(process.Process)) task.Outcome {
	o.mu.Lock()
	one := o.runs[fleet.Token(j.At.Token)]
	if one != nil {
		one.job = j
	}
	o.mu.Unlock()
	if one == nil {
		return task.Outcome{Void: errDropped}
	}
	if err := o.send(ctx, one); err != nil {
		return task.Outcome{Void: err}
	}
	outcome := o.wait(ctx, one, started)
	o.mu.Lock()
	defer o.mu.Unlock()
	if one.sent.IsZero() && errors.Is(outcome.Void, errVoided) {
		o.files.keepUnsent(one)
	}
	return outcome
}

// send hands over the job of a run. An error says that it was not sent, and never will be.
func (o *Owner) send(ctx context.Context, one *run) error {
	o.mu.Lock()
	k := o.known[one.at.Runner]
	o.mu.Unlock()
	j, err := o.files.jobOf(ctx, one, k)
	o.do(func() []fleet.Duty {
		if err != nil {
			o.forget(one)
			return o.core.Unassign(time.Now(), one.token())
		}
		one.handed = true
		return o.core.Send(time.Now(), j)
	})
	if err != nil {
		if ctx.Err() == nil { // otherwise there may be no next attempt
			o.files.keepUnsent(one)
		}
		o.background(func(ctx context.Context) { o.files.tidy(ctx, one, one.keys) })
		o.opts.Changed()
	}
	return o.files.unsent.ended(one.seq, err)
}

// Recover waits for the outcome of a run that an earlier daemon assigned.
func (o *Owner) Recover(ctx context.Context, j task.Job) task.Outcome {
	seq, _, _ := fleet.Token(j.At.Token).Task()
	o.mu.Lock()
	one := o.runs[fleet.Token(j.At.Token)]
	if one == nil {
		one = newRun(j, seq)
		one.handed, one.idempotent, one.keys = true, o.opts.Idempotent(j.Task.Agent) && repeats(o.known[j.At.Runner], j), sentKeys(j)
		o.runs[one.token()] = one
		if o.core != nil {
			one.restore(o.core)
		}
	}
	o.mu.Unlock()
	return o.wait(ctx, one, nil)
}

// repeats reports whether the runner of an earlier daemon's run ends it at the end of its lease, since it may be repeated.
func repeats(k fleet.Known, j task.Job) bool {
	a, _ := k.Agent(j.Task.Agent)
	return a.Idempotent && k.Incarnation == j.At.Incarnation
}

// restore gives a run of an earlier daemon to the state machine. The caller holds the mutex of the Owner.
func (one *run) restore(core *fleet.Owner) {
	core.Restore(time.Now(), fleet.Assignment{
		Token: one.token(), Runner: one.at.Runner, Incarnation: one.at.Incarnation, Agent: one.job.Task.Agent, Idempotent: one.idempotent,
		Deadline: one.job.Deadline,
	})
	if one.cancelled {
		core.Cancel(time.Now(), one.token())
	}
}

// wait waits for the outcome of a run.
func (o *Owner) wait(ctx context.Context, one *run, started func(process.Process)) task.Outcome {
	began, cancelled := one.began, ctx.Done()
	if started == nil {
		began = nil
	}
	for {
		select {
		case outcome := <-one.done:
			return outcome
		case <-o.over:
			return one.detach()
		case <-began:
			began = nil
			started(process.Process{})
		case <-cancelled:
			cancelled = nil
			if errors.Is(context.Cause(ctx), process.ErrDetach) {
				return one.detach()
			}
			o.cancel(one)
		}
	}
}

// detach leaves a run to its runner, unless its outcome is there.
func (one *run) detach() task.Outcome {
	select {
	case outcome := <-one.done:
		return outcome
	default:
		return task.Outcome{Detached: true}
	}
}

// cancel has a runner end a run, at once if it can be reached.
func (o *Owner) cancel(one *run) {
	o.mu.Lock()
	one.cancelled = true
	o.mu.Unlock()
	o.do(func() []fleet.Duty { return o.core.Cancel(time.Now(), one.token()) })
	o.order(one.at.Runner, fleet.Order{Cancel: one.token()})
}

// order sends a hint to a runner. The answer to its next report repeats what counts.
func (o *Owner) order(runner string, order fleet.Order) {
	o.mu.Lock()
	link := o.link
	order.Epoch = o.epoch
	o.mu.Unlock()
	if link == nil {
		return
	}
	if err := link.Order(runner, order); err != nil {
		o.opts.Log.Debug().Err(err).Str("runner", runner).Msg("order not sent")
	}
}

// giveBack gives back the place of a run that ended without a job, or the other jobs of its claim wait for it.
func giveBack(o *Owner, token fleet.Token) {
	given := false
	o.do(func() []fleet.Duty {
		if one := o.runs[token]; one == nil || one.handed {
			return nil
		}
		given = true
		return o.core.Unassign(time.Now(), token)
	})
	if given {
		o.opts.Changed()
	}
}

// Settled says that the end of a run is durable. Its runner may forget it.
func (o *Owner) Settled(at task.Assignment) {
	fault.Point("run-settled")
	token := fleet.Token(at.Token)
	giveBack(o, token)
	o.mu.Lock()
	one := o.runs[token]
	var reply fleet.DoneReply
	var answer func(fleet.DoneReply)
	if one != nil {
		o.forget(one)
		answer = one.answer
	}
	if o.core != nil && one != nil {
		if answer != nil {
			o.pasts.keep(token, at.Runner, fleet.PastSettled)
		}
		reply = o.core.Settled(token)
	}
	o.mu.Unlock()
	if answer != nil {
		answer(reply)
	}
	if one != nil {
		keys := one.keys
		if answer != nil { // otherwise its runner may send an answer with the same objects later
			keys = slices.Concat(keys, one.got)
		}
		o.background(func(ctx context.Context) { o.files.tidy(ctx, one, keys) })
	}
}

// end ends a run without an answer, and returns what answers an outcome whose files are not there yet: its runner keeps
// it. The caller holds the mutex of the Owner.
func (one *run) end(epoch int64) (sends func()) {
	one.ended = true
	if one.giveUp != nil {
		one.giveUp()
	}
	answer, reply := one.answer, fleet.DoneReply{Epoch: epoch, Token: one.token(), Later: true}
	one.answer = nil
	return func() {
		if answer != nil {
			answer(reply)
		}
	}
}

// lose ends a run without an answer.
func (o *Owner) lose(one *run, d fleet.Duty) {
	j := one.job
	j.Dir = "" // what it has of the run isn't the whole
	outcome := o.opts.Lost(j, d.Why)
	outcome.Retry = outcome.Retry && d.Kind == fleet.DutyRepeat
	o.mu.Lock()
	one.deliver(outcome)
	o.mu.Unlock()
}

// reach records whether the runner of a run can be reached.
func (o *Owner) reach(one *run) {
	if one.job.Reach == nil {
		return
	}
	one.settling.Lock()
	defer one.settling.Unlock()
	o.mu.Lock()
	unreached, delivered := one.unreached, one.delivered
	o.mu.Unlock()
	if delivered {
		return
	}
	if err := one.job.Reach(!unreached, time.Now().Add(o.opts.Unreachable-o.opts.Lease)); err != nil {
		o.opts.Log.Warn().Err(err).Str("runner", one.at.Runner).Msg("reachability of a run not recorded")
	}
}
