// Package agent runs a task with the command of its agent, and turns the run into a
// complete result. There is a result whatever the command does, and its output is only ever
// data.
package agent

import (
	"context"
	"errors"
	"path/filepath"
	"text/template"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/worker"
)

// An Agent is an id with its permissions and its command. New makes agents; they never
// change and may be used concurrently.
type Agent struct {
	binding      Binding
	command      []*template.Template    // one for each element of binding.Command
	runArguments func(task.Job) []string // the profile's arguments after the command; nil: none
	environ      []string                // the part that is the same in every run
	workers      *worker.Pool            // nil for an agent with a process for each run
	compared     *gitComparison          // what git obeys where workers in a sandbox write
	workdirs     []string                // exec.workdirs, each as written and with links resolved
	takenOver    bool                    // later agents have taken over the workers
	opts         Options
}

// tempFail is EX_TEMPFAIL of sysexits.h: try again later.
const tempFail = 75

// Binding returns the agent's binding with all defaults.
func (g *Agent) Binding() Binding { return g.binding }

// Run runs the job in its directory until no process is left, and returns the outcome, also
// if nothing could be started. If ctx ends with runner.ErrDetach, the run continues under
// its keeper; any other end of ctx ends the run, which counts as lost. Started, unless nil,
// is called once while the process runs, but not for a worker, which isn't part of one run.
func (g *Agent) Run(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
	if !j.Deadline.IsZero() && !time.Now().Before(j.Deadline.Round(0)) {
		return g.notStarted(j, envelope.DeadlineExceeded, "the deadline was over before the agent was started")
	}
	if j.Cwd == "" {
		cwd, wrong := g.Cwd(j.Task)
		if wrong.Refused() {
			return g.notStarted(j, wrong.Kind(), wrong.String())
		}
		j.Cwd = cwd
	}
	switch {
	case g.binding.Remote != nil || j.At.IsRemote():
		return runRemote(ctx, g, j, started)
	case g.binding.Inbox != nil:
		return g.void(j, "the agent has come to fetch its tasks itself")
	case g.workers != nil:
		return g.compare(j, g.ask(ctx, j))
	case j.Dir == "":
		return g.void(j, "the agent had no run directories when the run was meant to begin")
	case errors.Is(context.Cause(ctx), runner.ErrDetach):
		return task.Outcome{Detached: true}
	case ctx.Err() != nil:
		return g.void(j, "the run was ended before it began: "+context.Cause(ctx).Error())
	}
	release, err := g.takeSession(ctx, j)
	if err != nil {
		return g.unprepared(ctx, j, err)
	}
	defer release()
	j, spec, err := g.prepareDir(ctx, j)
	if err != nil {
		return g.unprepared(ctx, j, err)
	}
	m := g.newMeter(j)
	running, stop := m.watch(ctx)
	exit, err := g.opts.Run(running, spec, started)
	stop()
	if errors.Is(err, runner.ErrDetach) {
		return task.Outcome{Detached: true}
	}
	if unread, ok := errors.AsType[*runner.UnreadError](err); ok {
		return task.Outcome{Unread: unread}
	}
	if spawn, ok := errors.AsType[*runner.SpawnError](err); ok {
		if isShortage(err) {
			return task.Outcome{Void: err}
		}
		if ctx.Err() != nil {
			return g.void(j, "the run was ended before it began: "+context.Cause(ctx).Error())
		}
		if spec.Sandbox.Program != "" {
			return g.notStarted(j, envelope.SandboxUnavailable, (&noSandboxError{spawn}).Error())
		}
		return g.noProcess(j, spawn)
	}
	// Any other error concerns the records of the run; the exit itself is known.
	return makeCalls(ctx, g, j, g.keepWork(j, g.inspect(j, g.conclude(j, exit, m))))
}

// Recover returns the outcome of a run that an earlier daemon started. If the run's keeper
// is alive, Recover blocks, and the end of ctx means the same as for Run. Otherwise it ends
// the remaining processes. A run without a record of its exit is lost, and its answer is
// kept for review.
func (g *Agent) Recover(ctx context.Context, j task.Job) task.Outcome {
	if j.Dir == "" {
		return g.lost(j, task.Exit{Code: -1, Cause: task.CauseLost}, &meter{job: j}, "the daemon was gone when its worker had the task, so its end is unknown")
	}
	if s, ok := readSessionFile(j.Dir); ok && s.Continues != "" {
		if release, err := g.opts.Sessions.take(ctx, s.Continues); err == nil {
			defer release()
		}
	}
	m := g.newMeter(j)
	running, stop := m.watch(ctx)
	exit, known, err := g.await(running, j.Dir)
	stop()
	unread, failed := errors.AsType[*runner.UnreadError](err)
	switch {
	case errors.Is(err, runner.ErrDetach):
		return task.Outcome{Detached: true}
	case failed:
		return task.Outcome{Unread: unread}
	case known:
		return makeCalls(ctx, g, j, g.keepWork(j, g.inspect(j, g.concludeWhole(j, exit, m))))
	}
	message := "the daemon was gone when the agent ended, so its end is unknown"
	if err != nil {
		message += ": " + err.Error()
	}
	return g.keepWork(j, g.inspect(j, g.lost(j, exit, m, message)))
}

// concludeWhole concludes a run of an earlier daemon; the machine may have been down since.
func (g *Agent) concludeWhole(j task.Job, exit task.Exit, m *meter) task.Outcome {
	whole, err := runner.Whole(exit, j.Dir, filepath.Join(workDir(j.Dir), resultFile))
	switch {
	case err != nil:
		return task.Outcome{Exit: exit, Unread: err}
	case !whole:
		return g.lost(j, exit, m, "the machine went down and lost part of what the agent had said")
	}
	return g.conclude(j, exit, m)
}

func (g *Agent) await(ctx context.Context, dir string) (task.Exit, bool, error) {
	if g.opts.Await == nil {
		return runner.Await(dir, g.binding.Grace)
	}
	return g.opts.Await(ctx, dir)
}
