package agent

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/worktree"
)

// rounds are the tasks of an agent that do denied ones once more.
type rounds struct{ of *Agent }

// refuse says why a task can't be another round of the denied task that it names, or nil.
func (r rounds) refuse(t envelope.Task) error {
	_, _, err := r.clone(t)
	return err
}

// clone returns the clone in which another round of a denied task goes on, and whether there is
// one. A round that continues a session has that of the session.
func (r rounds) clone(t envelope.Task) (c worktree.Clone, ok bool, err error) {
	g := r.of
	id, person := t.RoundOf()
	if id == "" || g.opts.Earlier == nil || g.opts.Received != nil { // the work of a round comes with the job to a runner
		return c, false, nil
	}
	before, err := g.opts.Earlier(id)
	if err != nil {
		return c, false, fmt.Errorf("task %s can't be read: %w", id, err)
	}
	if err := g.fitsEarlier(t, id, before); err != nil {
		return c, false, err
	}
	switch {
	case before.Denier == "" || before.Denier != person:
		return c, false, fmt.Errorf("%s did not deny task %s, so there is no other round of it", person, id)
	case before.Request.Requester != t.Requester:
		return c, false, fmt.Errorf("task %s was requested by %s, and so is another round of it", id, before.Request.Requester)
	case !g.inWorktree(t) || t.Continues() != "":
		return c, false, nil
	}
	c, ok, err = g.opts.Worktrees.Open(before.Run)
	switch {
	case err != nil:
		return c, false, err
	case !ok:
		return c, false, fmt.Errorf("the worktree of task %s was removed, so no other round can go on there", id)
	}
	return c, true, g.opts.Worktrees.CanContinue(c)
}

// worktree makes the clone of a denied task that of another round of it. It returns false if
// the run has another clone.
func (r rounds) worktree(ctx context.Context, j task.Job) (dir string, ok bool, err error) {
	before, ok, err := r.clone(j.Task)
	if err != nil {
		return "", false, &noSessionError{err}
	}
	if !ok {
		return "", false, nil
	}
	dir, err = goOnIn(ctx, r.of.opts.Worktrees, j, before)
	return dir, true, err
}
