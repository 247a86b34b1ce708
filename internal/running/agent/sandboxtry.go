package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/breakout"
	"mailboxd/internal/sandboxing/cgroup"
)

// An UnsandboxedError says why an agent runs without its sandbox, as missing: none allows.
type UnsandboxedError struct{ Err error }

func (e *UnsandboxedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnsandboxedError) Unwrap() error { return e.Err }

// requireSandbox returns the program for the agent's sandbox. The error is an *UnsandboxedError if
// the agent would run without one.
func (g *Agent) requireSandbox() (host.Bubblewrap, error) {
	b, err := g.findSandbox()
	if err != nil || b.Path != "" {
		return b, err
	}
	if b, err = host.FindBubblewrap(); err != nil {
		return b, &UnsandboxedError{err}
	}
	return b, nil
}

// TrySandbox runs the program true in the sandbox of a binding, and says why that fails, or
// whether it was the weaker sandbox. It needs no daemon, and leaves nothing.
func TrySandbox(ctx context.Context, b Binding, own OwnDirs) (weaker bool, err error) {
	g, err := newAgent(b, Options{Own: own})
	if err != nil {
		return false, err
	}
	bubblewrap, err := g.requireSandbox()
	if err != nil {
		return false, err
	}
	return bubblewrap.Path == runner.WeakerProgram, g.trySandbox(ctx, bubblewrap)
}

func (g *Agent) trySandbox(ctx context.Context, bubblewrap host.Bubblewrap) error {
	_, exit, err := g.tryIn(ctx, bubblewrap, false, "true")
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the program true ended with status %d %s", exit.Code, exit.Cause)
	}
	return err
}

// TryBreakout runs the program that tries to break out in the sandbox of a binding, and
// returns its findings, and whether it was the weaker sandbox. It needs no daemon, and leaves
// nothing.
func TryBreakout(ctx context.Context, b Binding, own OwnDirs, t breakout.Targets) (_ []breakout.Finding, weaker bool, err error) {
	g, err := newAgent(b, Options{Own: own})
	if err != nil {
		return nil, false, err
	}
	bubblewrap, err := g.requireSandbox()
	if err != nil {
		return nil, false, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, false, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, false, err
	}
	out, exit, err := g.tryIn(ctx, bubblewrap, true, self, breakout.Name, string(text))
	if err != nil {
		return nil, false, err
	}
	var found []breakout.Finding
	if err := json.Unmarshal(out, &found); err != nil || len(found) == 0 {
		return nil, false, fmt.Errorf("the program that tries to break out ended with status %d %s%s, without findings", exit.Code, exit.Signal, exit.Cause)
	}
	return found, bubblewrap.Path == runner.WeakerProgram, nil
}

// tryIn runs a command in the sandbox of the agent, in a directory that is removed, and returns
// what it printed.
func (g *Agent) tryIn(ctx context.Context, bubblewrap host.Bubblewrap, network bool, argv ...string) (out []byte, exit task.Exit, err error) {
	dir, err := os.MkdirTemp("", "mailboxd-sandbox-*")
	if err != nil {
		return nil, exit, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, exit, err
	}
	if err := os.Mkdir(filepath.Join(dir, workName), 0o700); err != nil {
		return nil, exit, err
	}
	input := filepath.Join(dir, requestFile)
	if err := create(input, []byte("{}\n")); err != nil {
		return nil, exit, err
	}
	const patience = 30 * time.Second
	s := runner.Spec{Dir: dir, Argv: argv, Env: g.environ, Cwd: g.binding.Cwd, Stdin: input, Timeout: patience}
	if err := g.enclose(&s, task.Job{Dir: dir}, bubblewrap); err != nil {
		return nil, exit, err
	}
	s.Sandbox.Limits = cgroup.Limits{} // only the daemon is in the delegated cgroup
	if !network {
		s.Sandbox.Network = nil // nothing connects
	}
	exit, err = runner.Run(ctx, s, nil)
	switch {
	case err != nil:
		return nil, exit, err
	case exit.Cause == task.CauseSandbox:
		return nil, exit, errors.New(exit.Reason)
	case !exit.Sandboxed && !exit.Confined:
		return nil, exit, fmt.Errorf("the program %s ended with status %d %s, outside of the sandbox", argv[0], exit.Code, exit.Cause)
	}
	out, err = os.ReadFile(filepath.Join(dir, runner.StdoutFile))
	return out, exit, err
}
