package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/worker"
	"mailboxd/internal/sandboxing/gitfiles"
)

// encloseWorker puts a worker into the agent's sandbox, with a work directory in the worker's
// own one. The tasks of a worker come later, so it has no files of theirs.
func (g *Agent) encloseWorker(cmd *exec.Cmd, dir string) (worker.Sandbox, error) {
	bubblewrap, err := g.findSandbox()
	if err != nil || bubblewrap.Path == "" {
		return worker.Sandbox{}, err
	}
	if err := os.Mkdir(filepath.Join(dir, workName), 0o700); err != nil {
		return worker.Sandbox{}, err
	}
	s := runner.Spec{Dir: dir, Argv: cmd.Args, Env: cmd.Env, Cwd: g.binding.Cwd}
	if err := g.enclose(&s, task.Job{Dir: dir}, bubblewrap); err != nil {
		return worker.Sandbox{}, err
	}
	g.compared.begin(dir)
	cmd.Args = s.Argv
	e, err := runner.Enclose(cmd, s)
	if err != nil {
		return worker.Sandbox{}, &noSandboxError{err}
	}
	return worker.Sandbox{
		Weaker:  bubblewrap.Path == runner.WeakerProgram,
		Release: e.Release, Began: e.Began, OutOfMemory: e.OutOfMemory, Close: e.Close,
	}, nil
}

// A gitComparison compares what git obeys in the directories of sandboxed workers after each
// task. What one task left is named in its result, or in that of another task at the same time,
// and in no later one. The zero value has nothing to compare; it may be used concurrently.
type gitComparison struct {
	mu     sync.Mutex
	before *gitfiles.Snapshot
}

// begin remembers what git obeys before the first process of the workers starts.
func (c *gitComparison) begin(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before == nil {
		c.before = readGit(dir)
	}
}

// end returns for people what git obeys since the last call.
func (c *gitComparison) end() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	reasons := reviewGit(c.before)
	if len(reasons) > 0 {
		c.before.Accept()
	}
	return reasons
}

// compare adds to the outcome of a worker's task what git obeys since the task before, and the
// set-user-id files of a worker that was meant to have a sandbox.
func (g *Agent) compare(j task.Job, o task.Outcome) task.Outcome {
	if o.Exit.PID == 0 {
		return o
	}
	if g.binding.Sandbox.Active() {
		for _, reason := range g.reviewSetID(j, o.Exit) {
			o.Result.Review.Ask(short(reason))
		}
	}
	for _, reason := range g.compared.end() {
		o.Result.Review.Ask(short(reason))
	}
	return o
}
