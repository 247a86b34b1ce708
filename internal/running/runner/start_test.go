package runner_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/running/runner"
)

// Row 41: what cannot be started says so, and leaves no trace of a run.
func TestWhatCannotBeStartedIsASpawnError(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	nonsense := filepath.Join(t.TempDir(), "nonsense")
	if err := os.WriteFile(nonsense, []byte("\x00\x01"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(*runner.Spec){
		"no command":        func(s *runner.Spec) { s.Argv = nil },
		"missing":           func(s *runner.Spec) { s.Argv = []string{"/nonexistent/agent"} },
		"not on PATH":       func(s *runner.Spec) { s.Argv = []string{"no-such-agent-anywhere"} },
		"not executable":    func(s *runner.Spec) { s.Argv = []string{text} },
		"not a program":     func(s *runner.Spec) { s.Argv = []string{nonsense} },
		"a directory":       func(s *runner.Spec) { s.Argv = []string{"/"} },
		"a relative path":   func(s *runner.Spec) { s.Argv = []string{"./agent.sh; rm -rf /"} },
		"a NUL in argv":     func(s *runner.Spec) { s.Argv = append(s.Argv, "a\x00b") },
		"argv over E2BIG":   func(s *runner.Spec) { s.Argv = append(s.Argv, strings.Repeat("x", 1<<20)) },
		"no such cwd":       func(s *runner.Spec) { s.Cwd = "/nonexistent" },
		"no such stdin":     func(s *runner.Spec) { s.Stdin = "/nonexistent" },
		"relative run dir":  func(s *runner.Spec) { s.Dir = "." },
		"no such directory": func(s *runner.Spec) { s.Dir = "/nonexistent" },
	} {
		s := playing(t, "exit3")
		set(&s)
		_, err := runner.Run(t.Context(), s, func(runner.Process) { t.Errorf("%s: a process was started", name) })
		if _, ok := errors.AsType[*runner.SpawnError](err); !ok {
			t.Errorf("%s: Run = %v; want a *SpawnError", name, err)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, runner.StdoutFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: stdout is there (%v); want no sign of a run", name, err)
		}
	}
}

// Row 41: text busy. While it is being written a program cannot be started;
// one that is written to the end in the next moment can.
func TestABusyProgramIsTriedAgain(t *testing.T) {
	s := playing(t, "exit3")
	program := filepath.Join(t.TempDir(), "agent")
	copied, err := os.ReadFile(s.Argv[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(copied); err != nil {
		t.Fatal(err)
	}
	s.Argv = []string{program}
	if _, err := runner.Run(t.Context(), s, nil); !errors.Is(err, unix.ETXTBSY) {
		t.Errorf("Run(a program being written) = %v; want %v", err, unix.ETXTBSY)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s); got.Code != 3 {
		t.Errorf("Run(the written program) = %+v; want status 3", got)
	}
}

func TestNothingIsStartedForAContextThatHasEnded(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("too late")
	stop(why)
	_, err := runner.Run(ctx, playing(t, "exit3"), nil)
	if _, ok := errors.AsType[*runner.SpawnError](err); !ok || !errors.Is(err, why) {
		t.Errorf("Run = %v; want a *SpawnError for %q", err, why)
	}
}

func TestARunDirectoryIsUsedOnce(t *testing.T) {
	s := playing(t, "exit3")
	run(t, s)
	if _, err := runner.Run(t.Context(), s, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Run = %v; want %v", err, fs.ErrExist)
	}
}
