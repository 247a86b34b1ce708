package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// prepared is a run of a command of the shell after a setup of the shell.
func prepared(t *testing.T, setup, command string) runner.Spec {
	t.Helper()
	return runner.Spec{
		Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", command}, Env: []string{"PATH=/usr/bin:/bin"},
		Setup: runner.Setup{Argv: []string{"sh", "-c", setup}}, Grace: time.Second,
	}
}

func contentOf(t *testing.T, s runner.Spec, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheCommandOfARunBeginsAfterItsSetup(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	for _, host := range []func(context.Context, runner.Spec, func(runner.Process)) (task.Exit, error){runner.Run, k.Run} {
		s := prepared(t, "echo made; echo warned >&2; sleep 600 & echo $$ >setup", "cat setup; echo $$ >command")
		exit, err := host(t.Context(), s, nil)
		if err != nil || exit.Code != 0 || exit.Setup || exit.Started.After(exit.Finished) {
			t.Errorf("Run = %+v, %v; want a success of both steps", exit, err)
		}
		if len(exit.Survivors) != 1 { // it may not have become sleep yet
			t.Errorf("Run ended %+v of the setup; want sleep", exit.Survivors)
		}
		if got := contentOf(t, s, runner.SetupFile); got != "made\nwarned\n" {
			t.Errorf("the setup printed %q", got)
		}
		if got := contentOf(t, s, runner.StdoutFile); got != contentOf(t, s, "setup") {
			t.Errorf("the command printed %q", got)
		}
		if got := contentOf(t, s, runner.MetaFile); !strings.Contains(got, `"pid":`+strings.TrimSpace(contentOf(t, s, "command"))+",") {
			t.Errorf("meta.json has %s; want the process of the command", got)
		}
		if there, ok, err := runner.ReadExit(s.Dir); !ok || err != nil || there.PID != exit.PID {
			t.Errorf("ReadExit = %+v, %v, %v; want the exit of the command", there, ok, err)
		}
	}
}

func TestNoCommandBeginsAfterASetupThatFailed(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := prepared(t, "echo no such package; exit 7", "echo begun")
	exit, err := k.Run(t.Context(), s, nil)
	if err != nil || exit.Code != 7 || !exit.Setup || exit.PID == 0 {
		t.Errorf("Run = %+v, %v; want the status 7 of the setup", exit, err)
	}
	if there, ok, err := runner.ReadExit(s.Dir); !ok || err != nil || there.Code != 7 || !there.Setup {
		t.Errorf("ReadExit = %+v, %v, %v; want the same", there, ok, err)
	}
	if got := contentOf(t, s, runner.StdoutFile); got != "" {
		t.Errorf("the command printed %q", got)
	}
}

func TestALimitOfARunHoldsInItsSetupToo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*runner.Spec)
		cause  task.Cause
	}{
		"timeout":  {func(s *runner.Spec) { s.Timeout = 50 * time.Millisecond }, task.CauseTimeout},
		"deadline": {func(s *runner.Spec) { s.Deadline = time.Now().Add(50 * time.Millisecond) }, task.CauseDeadline},
		"output":   {func(s *runner.Spec) { s.MaxOutput = 2 }, task.CauseOutputTooLarge},
	} {
		s := prepared(t, "echo made; exec sleep 600", "echo begun")
		test.change(&s)
		exit, err := runner.Run(t.Context(), s, nil)
		if err != nil || exit.Cause != test.cause || !exit.Setup {
			t.Errorf("%s: Run = %+v, %v; want the cause %s in the setup", name, exit, err, test.cause)
		}
	}
	s := prepared(t, "exit 0", "exec sleep 600") // silence of the setup is no idleness, and silence of the command is
	s.IdleTimeout = 50 * time.Millisecond
	s.Setup.Argv[2] = "sleep 0.3"
	if exit, err := runner.Run(t.Context(), s, nil); err != nil || exit.Cause != task.CauseIdleTimeout || exit.Setup {
		t.Errorf("Run = %+v, %v; want an idle timeout of the command", exit, err)
	}
}

func TestASetupThatCannotStartIsNamed(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	for _, name := range []string{"no-such-program", "/no/such/program"} {
		s := prepared(t, "", "echo begun")
		s.Setup.Argv = []string{name}
		_, err := k.Run(t.Context(), s, nil)
		if spawn, ok := errors.AsType[*runner.SpawnError](err); !ok || !spawn.Setup || spawn.Command != name {
			t.Errorf("Run = %v; want an error of the setup %s", err, name)
		}
		if !runner.Void(s.Dir) {
			t.Errorf("the run with the setup %s may have begun", name)
		}
	}
}

func TestACommandThatCannotStartAfterItsSetupEndsTheRun(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := prepared(t, "echo made", "")
	s.Argv = []string{"/no/such/program"}
	exit, err := k.Run(t.Context(), s, nil)
	if err != nil || exit.Cause != task.CauseNotStarted || !exit.Setup || !strings.Contains(exit.Reason, "/no/such/program") {
		t.Errorf("Run = %+v, %v; want an exit that names the command", exit, err)
	}
	if runner.Void(s.Dir) {
		t.Error("the run counts as not begun, so the setup could run again")
	}
}

func TestARunWhoseKeeperIsKilledInItsSetupIsLost(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := playing(t, "exit3")
	s.Grace = 50 * time.Millisecond
	s.Setup.Argv = []string{"/bin/sh", "-c", "exec sleep 600"}
	var self runner.Process
	got, err := k.Run(t.Context(), s, func(p runner.Process) {
		self = p
		unix.Kill(keeperOf(t, p), unix.SIGKILL)
	})
	if err != nil || got.Cause != task.CauseLost || runner.Alive(self) {
		t.Errorf("Run = %+v, %v; want cause %s, and no process", got, err, task.CauseLost)
	}
	if !runner.InSetup(s.Dir) || runner.Void(s.Dir) {
		t.Error("the lost run counts as not begun, or its command began")
	}
}
