package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/worktree"
)

// An Earlier is a task whose session or work another one continues. The zero value is an unknown task.
type Earlier struct {
	State   task.State
	Agent   string        // that did it
	Request envelope.Task // zero: it isn't kept, or isn't one of AINL
	Run     string        // the id of its last run; "": none
	Dir     string        // of that run
	Denier  string        // who denied the task; "": no person
}

// An earlierSession is the session of an earlier task, ready to be continued.
type earlierSession struct {
	session
	id   string
	file string // "": unknown
	run  string // the last one of the earlier task
}

func (e earlierSession) tokens() int64 { return e.tokensIn(e.file) }

// A noSessionError says why a run can't continue a session. Nothing was started.
type noSessionError struct{ cause error }

func (e *noSessionError) Error() string { return e.cause.Error() }

// refuseContinue says why a task can't continue the session of the one that it names, or nil.
func (g *Agent) refuseContinue(t envelope.Task) error {
	if t.Continues() == "" || g.opts.Earlier == nil {
		return nil
	}
	_, err := g.earlier(t)
	return err
}

// earlier finds the session that a task continues. An error says why there is none, for the
// requester.
func (g *Agent) earlier(t envelope.Task) (earlierSession, error) {
	id := t.Continues()
	if _, known := sessionRecipes[g.binding.Profile]; !known || !g.binding.byRecipe() {
		return earlierSession{}, fmt.Errorf("agent %q can continue no session: only the command of a profile such as claude has a flag for it", g.binding.ID)
	}
	before, err := g.opts.Earlier(id)
	if err != nil {
		return earlierSession{}, fmt.Errorf("task %s can't be read: %w", id, err)
	}
	if err := g.fitsEarlier(t, id, before); err != nil {
		return earlierSession{}, err
	}
	s, ok := readSessionFile(before.Dir)
	e := earlierSession{session: s, id: idIn(before.Dir, g.binding.Output), run: before.Run}
	found, missing := g.findSandbox()
	sandboxed := missing != nil || found.Path != "" && found.Path != runner.WeakerProgram
	switch {
	case !ok || s.Program != g.binding.Profile || e.id == "":
		return e, fmt.Errorf("no session of task %s is known: its run began none, its directory was removed, or it was made by an earlier version of mailboxd", id)
	case s.Dir == "" && sessionRecipes[s.Program].file != nil:
		return e, fmt.Errorf("the session of task %s was not kept: it ran in the weaker sandbox", id)
	case s.Sandboxed && !sandboxed:
		return e, fmt.Errorf("the session of task %s is in its sandbox, and agent %q has none now", id, g.binding.ID)
	case !s.Sandboxed && sandboxed:
		return e, fmt.Errorf("the session of task %s is outside of the sandbox that agent %q has now", id, g.binding.ID)
	case s.Sandboxed && (filepath.Base(s.Dir) != sessionsDir || !isInside(resolved(s.Dir), resolved(g.opts.Own.State))):
		return e, fmt.Errorf("%s names a directory that is not of a run", filepath.Join(before.Dir, sessionFile))
	}
	if e.file, err = s.find(e.id); gone(err) {
		return e, fmt.Errorf("the session %s of task %s is gone: its file is not in %s", e.id, id, s.Dir)
	}
	if err == nil {
		err = g.checkPlace(t, e)
	}
	return e, err
}

// fitsEarlier compares a task with the one whose session or work it continues.
func (g *Agent) fitsEarlier(t envelope.Task, id envelope.ID, before Earlier) error {
	was := before.Request
	switch {
	case before.State == "":
		return fmt.Errorf("there is no task %s", id)
	case before.State != task.Done:
		return fmt.Errorf("task %s is %s: its session can be continued when it is done", id, before.State)
	case was.ID == "":
		return fmt.Errorf("the request of task %s is not one of AINL, or too old to be kept: its session can't be continued", id)
	case before.Agent != g.binding.ID:
		return fmt.Errorf("task %s was for agent %q, and its session is that agent's", id, before.Agent)
	case before.Dir == "":
		return fmt.Errorf("task %s had no run, so it has no session", id)
	case was.Workdir() != t.Workdir() || was.Worktree() != t.Worktree() || was.Base() != t.Base():
		return fmt.Errorf("it continues in the same directory as task %s: give it the same %s, %s and %s", id, envelope.WorkdirKey, envelope.WorktreeKey, envelope.BaseKey)
	case t.Sensitivity < was.Sensitivity:
		return fmt.Errorf("its sensitivity is %s, and that of task %s is %s: what was said there would be less protected", t.Sensitivity, id, was.Sensitivity)
	case g.opts.isAgent(t.Requester) && t.Requester != was.Requester:
		return fmt.Errorf("agent %q did not request task %s, so it can't continue its session", t.Requester, id)
	}
	return nil
}

// checkPlace checks the directory in which a session goes on.
func (g *Agent) checkPlace(t envelope.Task, e earlierSession) error {
	if g.inWorktree(t) {
		c, ok, err := g.opts.Worktrees.Open(e.run)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("the worktree of task %s was removed, so its session can't be continued there", t.Continues())
		}
		return g.opts.Worktrees.CanContinue(c)
	}
	if g.binding.Cwd != "" && t.Workdir() == "" && e.Cwd != g.binding.Cwd {
		return fmt.Errorf("task %s worked in %s, and agent %q works in %s now", t.Continues(), e.Cwd, g.binding.ID, g.binding.Cwd)
	}
	if info, err := os.Lstat(e.Cwd); err != nil || !info.IsDir() {
		return fmt.Errorf("the directory of task %s is gone: %s", t.Continues(), e.Cwd)
	}
	return nil
}

// A Sessions says which sessions are in use, so that each is continued by one run at a time. The
// zero value is ready. It may be used concurrently, and not copied.
type Sessions struct {
	mu   sync.Mutex
	used map[string]chan struct{} // by id; closed when the session is free again
}

// takeSession waits until what a run continues is free, and takes it: a session, or the worktree of a
// denied task.
func (g *Agent) takeSession(ctx context.Context, j task.Job) (release func(), err error) {
	if g.opts.Earlier == nil {
		return func() {}, nil
	}
	c, _, err := rounds{g}.clone(j.Task)
	name := c.Dir
	if err == nil && j.Task.Continues() != "" {
		var e earlierSession
		e, err = g.earlier(j.Task)
		name = e.id
	}
	if err != nil {
		return nil, &noSessionError{err}
	}
	if name == "" {
		return func() {}, nil
	}
	wait, stop := ctx, func() {}
	if !j.Deadline.IsZero() {
		wait, stop = context.WithDeadlineCause(ctx, j.Deadline, errInUse)
	}
	defer stop()
	if release, err = g.opts.Sessions.take(wait, name); errors.Is(err, errInUse) {
		err = &noSessionError{err}
	}
	return release, err
}

var errInUse = errors.New("its session was in use by another task until the deadline")

// take waits until a session is free, and takes it. Release gives it back.
func (s *Sessions) take(ctx context.Context, id string) (release func(), err error) {
	if s == nil || id == "" {
		return func() {}, nil
	}
	for {
		s.mu.Lock()
		busy, taken := s.used[id]
		if !taken {
			if s.used == nil {
				s.used = map[string]chan struct{}{}
			}
			free := make(chan struct{})
			s.used[id] = free
			s.mu.Unlock()
			return func() { s.release(id, free) }, nil
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-busy:
		}
	}
}

func (s *Sessions) release(id string, free chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, id)
	close(free)
}

// continueWorktree makes the clone of an earlier run that of a run.
func (g *Agent) continueWorktree(ctx context.Context, j task.Job) (string, error) {
	e, err := g.earlier(j.Task)
	if err != nil {
		return "", &noSessionError{err}
	}
	before, ok, err := g.opts.Worktrees.Open(e.run)
	if err == nil && !ok {
		err = errors.New("the worktree was removed")
	}
	if err != nil {
		return "", err
	}
	return goOnIn(ctx, g.opts.Worktrees, j, before)
}

// goOnIn makes a clone that of a run, and returns the directory in it for the agent.
func goOnIn(ctx context.Context, s worktree.Store, j task.Job, before worktree.Clone) (string, error) {
	c, err := s.Continue(ctx, worktree.Request{
		Run: j.RunID, Task: string(j.Task.ID), Revision: j.Revision, Attempt: j.Attempt,
	}, before, j.Dir)
	return c.Cwd(), err
}
