package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/host"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// TrySandbox runs the program true in the sandbox of a binding, and says why that fails, or
// whether it was the weaker sandbox. It needs no daemon, and leaves nothing.
func TrySandbox(ctx context.Context, b Binding, own OwnDirs) (weaker bool, err error) {
	g, err := newAgent(b, Options{Own: own})
	if err != nil {
		return false, err
	}
	bubblewrap, err := g.findSandbox()
	if err == nil && bubblewrap.Path == "" {
		_, err = host.FindBubblewrap() // says why there is none
	}
	if err != nil {
		return false, err
	}
	return bubblewrap.Path == runner.WeakerProgram, g.trySandbox(ctx, bubblewrap)
}

func (g *Agent) trySandbox(ctx context.Context, bubblewrap host.Bubblewrap) (err error) {
	dir, err := os.MkdirTemp("", "mailboxd-sandbox-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, workName), 0o700); err != nil {
		return err
	}
	const patience = 10 * time.Second
	s := runner.Spec{Dir: dir, Argv: []string{"true"}, Env: g.environ, Cwd: g.binding.Cwd, Timeout: patience}
	if err := g.enclose(&s, task.Job{Dir: dir}, bubblewrap); err != nil {
		return err
	}
	s.Sandbox.Network = nil // nothing connects
	exit, err := runner.Run(ctx, s, nil)
	switch {
	case err != nil:
		return err
	case exit.Cause == task.CauseSandbox:
		return errors.New(exit.Reason)
	case !exit.Sandboxed && !exit.Confined || exit.Code != 0:
		return fmt.Errorf("the program true ended with status %d %s", exit.Code, exit.Cause)
	}
	return nil
}
