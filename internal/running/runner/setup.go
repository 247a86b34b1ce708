package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// SetupFile is the file of a run directory with what the setup printed: its standard output and
// standard error.
const SetupFile = "setup.log"

// A Setup is a command that prepares the working directory of a run before its command. Both are
// steps of one run: they share its limits, environment, mark and records. The command starts when
// the setup has exited with 0 and nothing is left of it. The zero value is no setup.
type Setup struct {
	Argv    []string // as Spec.Argv
	Options []string // instead of Sandbox.Options
	Network []string // instead of Sandbox.Network

	path string // resolved path of Argv[0]; "": look it up on PATH
}

// given reports whether there is a setup.
func (u Setup) given() bool { return len(u.Argv) > 0 }

// setupStep returns the Spec of the setup. It answers nothing, may be silent for long, and has an
// empty standard input.
func (s Spec) setupStep() Spec {
	s.Argv, s.path, s.Stdin = s.Setup.Argv, s.Setup.path, ""
	s.Sandbox.Options, s.Sandbox.Network = s.Setup.Options, s.Setup.Network
	s.IdleTimeout, s.Progress, s.ExitTimeout, s.Answer = 0, "", 0, ""
	s.step = inSetup
	return s
}

// A step is a part of a run. The zero value is the only one.
type step int

const (
	onlyStep step = iota
	inSetup
	afterSetup
)

// InSetup reports whether the setup of the run in a directory goes on, or was the end of the run.
// Standard error is created with the command.
func InSetup(dir string) bool {
	return unix.Access(inDir(dir, SetupFile), unix.F_OK) == nil && unix.Access(inDir(dir, StderrFile), unix.F_OK) != nil
}

// runSteps is run with a setup. Standard output is created first, because it shows that the run may
// have begun. After the setup has begun, the error is nil.
func runSteps(ctx context.Context, f *processTable, s Spec, begun func(Meta)) (ending, error) {
	stdout, err := createOutputFile(s.Dir, StdoutFile)
	if err != nil {
		return ending{}, &SpawnError{Command: s.Setup.Argv[0], Err: fmt.Errorf("create output: %w", err), Setup: true}
	}
	defer unix.Close(stdout) // the command has a copy
	setup, err := runStep(ctx, f, s.setupStep(), begun)
	if err != nil {
		_ = os.Remove(inDir(s.Dir, StdoutFile)) // an empty file does no harm
		if spawn, ok := errors.AsType[*SpawnError](err); ok {
			spawn.Setup = true
		}
		return ending{}, err
	}
	setup.silent, setup.exit.Setup = false, true
	if setup.exit.Cause == "" && setup.exit.Code == 0 {
		setup.exit.Cause, setup.exit.Reason = s.overdue(ctx, setup.exit)
	}
	if setup.exit.Cause != "" || setup.exit.Code != 0 {
		return setup, nil
	}
	s.step, s.stdout = afterSetup, stdout
	if s.Timeout > 0 {
		s.Timeout -= setup.exit.Wall
	}
	e, err := runStep(ctx, f, s, begun)
	if err != nil {
		return ending{exit: s.notBegun(ctx, setup.exit, err)}, nil
	}
	e.silent = false
	e.exit.Started, e.exit.Wall = setup.exit.Started, e.exit.Finished.Sub(setup.exit.Started)
	e.exit.Survivors = append(setup.exit.Survivors, e.exit.Survivors...)
	return e, nil
}

// overdue returns why the command must not begin after the setup; "" if it may.
func (s Spec) overdue(ctx context.Context, setup task.Exit) (task.Cause, string) {
	switch {
	case ctx.Err() != nil:
		return task.CauseInterrupted, context.Cause(ctx).Error()
	case !s.Deadline.IsZero() && !time.Now().Before(s.Deadline.Round(0)):
		return task.CauseDeadline, ""
	case s.Timeout > 0 && setup.Wall >= s.Timeout:
		return task.CauseTimeout, ""
	}
	return "", ""
}

// notBegun returns the exit of a run whose command couldn't be started after its setup.
func (s Spec) notBegun(ctx context.Context, exit task.Exit, err error) task.Exit {
	exit.Code, exit.Cause, exit.Reason = -1, task.CauseNotStarted, err.Error()
	if ctx.Err() != nil {
		exit.Cause, exit.Reason = task.CauseInterrupted, context.Cause(ctx).Error()
	}
	return exit
}

// createSetupOutput creates the file of the setup, which gets both outputs.
func createSetupOutput(dir string) (output, error) {
	fd, err := createOutputFile(dir, SetupFile)
	if err != nil {
		return output{}, fmt.Errorf("create output: %w", err)
	}
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(fd)
		return output{}, fmt.Errorf("create output: %w", os.NewSyscallError("fcntl", err))
	}
	return output{fd, again}, nil
}

// openOutput returns the output of a step of the run.
func (s Spec) openOutput() (output, error) {
	switch s.step {
	case inSetup:
		return createSetupOutput(s.Dir)
	case afterSetup:
		stderr, err := createOutputFile(s.Dir, StderrFile)
		if err != nil {
			return output{}, fmt.Errorf("create output: %w", err)
		}
		stdout, err := unix.FcntlInt(uintptr(s.stdout), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			unix.Close(stderr)
			return output{}, fmt.Errorf("create output: %w", os.NewSyscallError("fcntl", err))
		}
		return output{stdout, stderr}, nil
	}
	return createOutput(s.Dir)
}

// errorFile is the file with the standard error of a step.
func (s Spec) errorFile() string {
	if s.step == inSetup {
		return SetupFile
	}
	return StderrFile
}

// removeOutput removes the output of a step that did not begin. That of the command stays after a
// setup: the run has begun.
func (s Spec) removeOutput(o output) {
	switch s.step {
	case inSetup:
		o.close()
		_ = os.Remove(inDir(s.Dir, SetupFile)) // an empty file does no harm
	case afterSetup:
		o.close()
	default:
		o.remove(s.Dir)
	}
}
