package agent

import (
	"os"
	"os/exec"
	"path/filepath"

	"mailboxd/internal/runner"
	"mailboxd/internal/task"
	"mailboxd/internal/worker"
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
