package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/stores/worktree"
)

// inWorktree reports whether the runs of a task work in a clone of a repository.
func (g *Agent) inWorktree(t envelope.Task) bool { return g.binding.Worktree || t.Worktree() }

// refuseWorktree says why a task that works in a clone can't have one, or nil.
func (g *Agent) refuseWorktree(t envelope.Task) error {
	switch {
	case !g.inWorktree(t) && t.Base() != "":
		return fmt.Errorf("agent %q works in no worktree, so there is nothing to begin with %q; set %s", g.binding.ID, t.Base(), envelope.WorktreeKey)
	case !g.inWorktree(t):
		return nil
	case g.binding.Worker != nil || g.binding.Inbox != nil || g.binding.Service != nil:
		return fmt.Errorf("agent %q has no process of its own for a task: it cannot work in a worktree", g.binding.ID)
	case g.binding.Cwd == "" && t.Workdir() == "" && !g.binding.Commits:
		return fmt.Errorf("agent %q has no repository to make a worktree of: set its exec.cwd, or send the task with a directory", g.binding.ID)
	}
	return nil
}

// checkWorktree checks exec.worktree.
func (b Binding) checkWorktree() *FieldError {
	switch {
	case !b.Worktree:
		return nil
	case b.Worker != nil || b.Inbox != nil:
		return wrong("exec.worktree", "only an agent with exec.command can work in a worktree")
	case b.Cwd == "" && len(b.Workdirs) == 0 && !b.Commits && b.Remote == nil:
		return wrong("exec.worktree", "needs exec.cwd or exec.workdirs, directories in a git repository")
	}
	for i, name := range b.Copy {
		if err := worktree.CheckCopy(name); err != nil {
			return wrong(fmt.Sprintf("exec.worktree.copy[%d]", i), "%v", err)
		}
	}
	return nil
}

// makeWorktree makes the clone of a run, and returns the directory in it for the agent. Each
// attempt has a clone of its own: the run id names it, and no run id is used twice. An attempt
// goes on with the work of the one before if that one ended to wait for something. After a
// failed attempt it starts afresh, since half-done work may be the reason; that work stays in
// the directory of its run.
func (g *Agent) makeWorktree(ctx context.Context, j task.Job) (string, error) {
	if g.opts.Received != nil {
		return receivedWorktree(ctx, g, j)
	}
	if j.Task.Continues() != "" {
		return g.continueWorktree(ctx, j)
	}
	if dir, ok, err := (rounds{g}).worktree(ctx, j); ok || err != nil {
		return dir, err
	}
	before, err := g.opts.Worktrees.Before(string(j.Task.ID), j.Revision, j.Attempt)
	if err != nil {
		return "", err
	}
	c, err := g.opts.Worktrees.Create(ctx, worktree.Request{
		Run: j.RunID, Task: string(j.Task.ID), Revision: j.Revision, Attempt: j.Attempt,
		Source: j.Cwd, Base: j.Task.Base(), Resolved: j.Task.Workdir() != "", After: before,
		Copy: g.binding.Copy,
	})
	if len(c.NotCopied) > 0 && g.opts.Notice != nil {
		g.opts.Notice(g.binding.ID, &NotCopiedError{Run: j.RunID, Paths: c.NotCopied})
	}
	return c.Cwd(), err
}

// receivedWorktree makes the clone of a run at a runner, of the commit that came with the job.
func receivedWorktree(ctx context.Context, g *Agent, j task.Job) (string, error) {
	r, ok := g.opts.Received(j.RunID)
	if !ok {
		return "", fmt.Errorf("no commit came with the job of run %s", j.RunID)
	}
	c, err := g.opts.Worktrees.Create(ctx, worktree.Request{
		Run: j.RunID, Task: string(j.Task.ID), Revision: j.Revision, Attempt: j.Attempt,
		Received: &r.Bundle, Patch: r.Patch, Copy: g.binding.Copy,
	})
	if len(c.NotCopied) > 0 && g.opts.Notice != nil {
		g.opts.Notice(g.binding.ID, &NotCopiedError{Run: j.RunID, Paths: c.NotCopied})
	}
	return c.Cwd(), err
}

// A Received is the commit that a run at a runner begins with, and the earlier work that came with it.
type Received struct {
	Bundle worktree.Bundle
	Patch  []byte
}

// A NotCopiedError says what of exec.worktree.copy isn't in the clone of a run, which goes on.
type NotCopiedError struct {
	Run   string
	Paths []string // with the reasons
}

func (e *NotCopiedError) Error() string {
	return fmt.Sprintf("not copied into the worktree of run %s: %s", e.Run, short(strings.Join(e.Paths, "; ")))
}

// cloneOf returns what a sandbox has of the clone of a run: all of it to write, and the objects
// of the source repository to read.
func (g *Agent) cloneOf(j task.Job) (write, read []sandbox.Path, err error) {
	c, ok, err := g.opts.Worktrees.Open(j.RunID)
	if !ok || err != nil {
		return nil, nil, err
	}
	return []sandbox.Path{{Name: c.Dir, Real: c.Dir}}, []sandbox.Path{{Name: c.Objects, Real: c.Objects}}, nil
}

// keepTimeout limits the time for the difference of a large clone.
const keepTimeout = 10 * time.Minute

// keepWork keeps the work of an ended run beside its answer: the files that the answer publishes,
// and the patch, if the run worked in a clone. The outcome is unread while the machine lacks the
// space for it.
func (g *Agent) keepWork(j task.Job, o task.Outcome) task.Outcome {
	if o.Unread != nil || o.Detached || o.Void != nil {
		return o
	}
	if err := (&publisher{agent: g, job: j, named: map[string]string{}}).publish(&o); err != nil {
		return task.Outcome{Exit: o.Exit, Unread: err}
	}
	g.checkEdited(j, &o.Result)
	c, ok, err := g.opts.Worktrees.Open(j.RunID)
	if err == nil && ok {
		ctx, stop := context.WithTimeout(context.Background(), keepTimeout) // the end of the daemon waits for it
		defer stop()
		g.reviewSource(ctx, c, &o)
		c.Prepared = c.Prepared || o.Exit.PID != 0 && o.Exit.Cause != task.CauseLost && !o.Exit.Setup && len(g.binding.Setup) > 0
		c, err = g.opts.Worktrees.Keep(ctx, c, j.Dir, o.Hold == "" && o.Result.Status == envelope.Failed)
	}
	switch {
	case isShortage(err):
		return task.Outcome{Exit: o.Exit, Unread: err}
	case err == nil && ok && c.Work.Problem != "":
		err = errors.New(c.Work.Problem)
	}
	if err != nil {
		o.Result.Review.Ask(short(fmt.Sprintf("the difference of the worktree could not be kept: %v", err)))
	}
	if err == nil && ok && c.Work.File == "" && j.Task.Edit() && o.Hold == "" && o.Result.Status == envelope.OK {
		o.Result.Review.Ask("the task was sent to edit files, and its worktree has no change")
	}
	if err == nil && ok && c.Work.File != "" {
		o.Patch = c.Work.Digest
		o.Result.Artifacts = append(o.Result.Artifacts, envelope.Ref{Kind: "diff", URI: envelope.FileURI(g.opts.Worktrees.PatchFile(c))})
	}
	return o
}

// mostSourceChanges limits the files that a reason for a review names.
const mostSourceChanges = 5

// reviewSource asks for a review if the repository beside a clone changed while the run worked. In a
// sandbox the run can't change it.
func (g *Agent) reviewSource(ctx context.Context, c worktree.Clone, o *task.Outcome) {
	if o.Exit.Sandboxed || o.Exit.Confined || o.Exit.PID == 0 {
		return
	}
	changed, err := g.opts.Worktrees.SourceChanges(ctx, c)
	if err != nil || len(changed) == 0 {
		return // without a repository there is nothing to protect; Keep says so
	}
	if more := len(changed) - mostSourceChanges; more > 0 {
		changed = append(changed[:mostSourceChanges], fmt.Sprintf("%d more", more))
	}
	o.Result.Review.Ask(short(fmt.Sprintf("%s changed while the run was working in its worktree: %s; the run may have done it, or another program",
		c.Source, strings.Join(changed, ", "))))
}
