// Package agent turns a task into one run of the command that is bound to its
// agent, and the run into a complete result. Whatever the command does, there
// is a result, and the command's own words never become more than data.
package agent

import (
	"context"
	"errors"
	"text/template"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
	"mailboxd/internal/worker"
)

// An Agent is an id, what it may do and how it is run. Agents are made by New,
// never change, and may be used concurrently.
type Agent struct {
	binding Binding
	command []*template.Template // one for each element of binding.Command
	terms   func(Job) []string   // what stands behind it, by the profile; nil: nothing
	environ []string             // the part that is the same for every run
	workers *worker.Pool         // nil for an agent with a process for each run
	kept    bool                 // by agents that came later
	opts    Options
}

// A Job is one attempt at one revision of a task.
type Job struct {
	Task     envelope.Task
	Revision int
	Attempt  int    // 1 is the first
	Dir      string // the run directory: absolute, existing, empty before the run; "" for a worker
	RunID    string
	Digest   string // what a person agreed to; nothing here depends on it

	// Allowance is what the run may spend as it begins. Meter, unless nil, takes
	// what it has spent in all so far, as it goes on and when it is over; an
	// error says that this is too much, in words for the requester, and the run
	// is to be ended.
	Allowance envelope.Budget
	Meter     func(envelope.Cost) error

	// Conversation is what was said to and by the agent about the task and those
	// that belong to it, the oldest first; empty for the first attempt at a task
	// about which nothing was said. Report, unless nil, takes what the agent says
	// about its progress while it runs.
	Conversation []envelope.Message
	Report       func(envelope.Message)
	task.Terms
}

// An Outcome is what became of a Job. Its Result is complete; a Cost of nil
// there means that nobody knows it.
type Outcome struct {
	Result envelope.Result
	Exit   runner.Exit // of the process; Code is -1 when there was none
	Retry  bool        // another attempt may be made; one that was Interrupted does not count

	// Said is what the agent said in messages, in order, beside its answer: to whom
	// it reports, whom it asks, what it delegates.
	Said []envelope.Message

	// Hold, unless "", is what the task waits for before it is run again: a
	// person's login, without which nothing was done; a Reply; the end of its
	// Children. Its Result says why, and that attempt does not count.
	Hold task.Reason

	// Unanswered, unless its Status is "", is what becomes the answer if nobody
	// replies in time to what the agent asked its requester: that question itself.
	// Hold is Reply then.
	Unanswered envelope.Result

	// Void says that nothing was started for want of what the machine has too
	// little of, such as disk or open files: nothing else here counts, and the
	// job can be begun afresh.
	Void error

	// Unread says that the run is over, but a part of what it left could not be
	// read, for a reason that has nothing to do with the agent: nothing else here
	// counts but Exit, which is zero when that could not be read. Recover reads it
	// again.
	Unread error

	// Detached says that ctx ended with runner.ErrDetach and the run goes on
	// without us: nothing else here counts.
	Detached bool
}

// tempFail is EX_TEMPFAIL of sysexits.h: try again later.
const tempFail = 75

// Binding returns how the agent is run, defaults filled in.
func (g *Agent) Binding() Binding { return g.binding }

// Run runs the job in its directory until nothing is left of it, and returns
// what came of it, also when nothing could be started. When ctx ends with
// runner.ErrDetach the run is left to whoever hosts it; at any other end of ctx
// it is ended and counts as lost. Started, unless nil, is called once while the
// process runs, but not for a worker, which is nobody's own.
func (g *Agent) Run(ctx context.Context, j Job, started func(runner.Process)) Outcome {
	if !j.Deadline.IsZero() && !time.Now().Before(j.Deadline.Round(0)) {
		return g.notStarted(j, envelope.DeadlineExceeded, "the deadline was over before the agent was started")
	}
	switch {
	case g.binding.Inbox != nil:
		return g.void(j, "the agent has come to fetch its tasks itself")
	case g.workers != nil:
		return g.ask(ctx, j)
	case j.Dir == "":
		return g.void(j, "the agent had no run directories when the run was meant to begin")
	case errors.Is(context.Cause(ctx), runner.ErrDetach):
		return Outcome{Detached: true}
	case ctx.Err() != nil:
		return g.void(j, "the run was ended before it began: "+context.Cause(ctx).Error())
	}
	spec, err := g.prepare(j)
	if scarce(err) {
		return Outcome{Void: err}
	}
	if err != nil {
		return g.notStarted(j, envelope.InternalError, "the run could not be prepared: "+err.Error())
	}
	m := g.newMeter(j)
	running, stop := m.watch(ctx)
	exit, err := g.opts.Run(running, spec, started)
	stop()
	if errors.Is(err, runner.ErrDetach) {
		return Outcome{Detached: true}
	}
	if unread, ok := errors.AsType[*runner.UnreadError](err); ok {
		return Outcome{Unread: unread}
	}
	if spawn, ok := errors.AsType[*runner.SpawnError](err); ok {
		if scarce(err) {
			return Outcome{Void: err}
		}
		if ctx.Err() != nil {
			return g.void(j, "the run was ended before it began: "+context.Cause(ctx).Error())
		}
		return g.noProcess(j, spawn)
	}
	// Any other error concerns the records of the run for somebody after us; the
	// exit itself is in hand.
	return g.conclude(j, exit, m)
}

// Recover returns what became of a run that an earlier daemon started. As long
// as somebody still hosts it, Recover blocks, and the end of ctx means what it
// means to Run; otherwise whatever is left of it is ended. How a run ended that
// left no record of its exit is not known: it is lost, and an answer that lies
// in its directory is kept for review.
func (g *Agent) Recover(ctx context.Context, j Job) Outcome {
	if j.Dir == "" {
		return g.lost(j, runner.Exit{Code: -1, Cause: runner.Lost}, &meter{job: j}, "the daemon was gone when its worker had the task, so nobody knows what became of it")
	}
	m := g.newMeter(j)
	running, stop := m.watch(ctx)
	exit, known, err := g.await(running, j.Dir)
	stop()
	unread, failed := errors.AsType[*runner.UnreadError](err)
	switch {
	case errors.Is(err, runner.ErrDetach):
		return Outcome{Detached: true}
	case failed:
		return Outcome{Unread: unread}
	case known:
		return g.concludeWhole(j, exit, m)
	}
	message := "the daemon was gone when the agent ended, so nobody knows how it ended"
	if err != nil {
		message += ": " + err.Error()
	}
	return g.lost(j, exit, m, message)
}

// concludeWhole is conclude for a run of an earlier daemon: the machine may have
// been down since.
func (g *Agent) concludeWhole(j Job, exit runner.Exit, m *meter) Outcome {
	whole, err := exit.Whole(j.Dir, inDir(j, resultFile))
	switch {
	case err != nil:
		return Outcome{Exit: exit, Unread: err}
	case !whole:
		return g.lost(j, exit, m, "the machine went down and lost part of what the agent had said")
	}
	return g.conclude(j, exit, m)
}

func (g *Agent) await(ctx context.Context, dir string) (runner.Exit, bool, error) {
	if g.opts.Await == nil {
		return runner.Await(dir, g.binding.Grace)
	}
	return g.opts.Await(ctx, dir)
}
