package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"mailboxd/internal/running/runner"
)

func TestAnExitStatusIsAnAnswer(t *testing.T) {
	s := playing(t, "exit3")
	got := run(t, s)
	if got.Code != 3 || got.Signal != "" || got.Cause != "" || got.PID == 0 || got.Survivors != nil {
		t.Errorf("Run(exit3) = %+v; want status 3, no signal, no cause", got)
	}
	if got.Wall <= 0 || got.Finished.Before(got.Started) {
		t.Errorf("Run(exit3) took %v, from %v to %v", got.Wall, got.Started, got.Finished)
	}
}

func TestEverythingThatMattersIsInTheRunDirectory(t *testing.T) {
	s := playing(t, "exit3")
	var process runner.Process
	exit, err := runner.Run(t.Context(), s, func(p runner.Process) { process = p })
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := runner.ReadExit(s.Dir)
	if !ok || err != nil {
		t.Fatalf("ReadExit = %v, %v; want the exit", ok, err)
	}
	wallClock := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(exit, got, wallClock); diff != "" {
		t.Errorf("exit.json differs from what Run returned:\n%s", diff)
	}
	meta, ok, err := runner.ReadMeta(s.Dir)
	if !ok || err != nil || meta.Process != process || meta.Cwd != s.Dir || !slices.Equal(meta.Argv, s.Argv) {
		t.Errorf("ReadMeta = %+v, %v, %v; want process %+v", meta, ok, err, process)
	}
	for _, name := range []string{runner.StdoutFile, runner.StderrFile, runner.MetaFile, runner.ExitFile} {
		info, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v; want a file with mode 0600", name, info.Mode(), err)
		}
	}
}

func TestARecordThatIsNoFileIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, runner.ExitFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := runner.ReadExit(dir); ok || err == nil {
		t.Errorf("ReadExit(a FIFO) = %v, %v; want an error", ok, err)
	}
}

func TestARunWithoutAnEndHasNoExit(t *testing.T) {
	if _, ok, err := runner.ReadExit(t.TempDir()); ok || err != nil {
		t.Errorf("ReadExit(empty directory) = %v, %v; want false, nil", ok, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, runner.ExitFile), []byte(`{"code":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := runner.ReadExit(dir); ok || err == nil {
		t.Errorf("ReadExit(half a file) = %v, %v; want an error", ok, err)
	}
}

// Row 40: nothing to block, nothing to break, and its end is there.
func TestStandardInputIsAFile(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16)
	for _, name := range []string{"echo", "exit3"} {
		s := playing(t, name)
		s.Stdin = filepath.Join(s.Dir, "request.json")
		if err := os.WriteFile(s.Stdin, []byte(big), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, s)
		if got := read(t, s, runner.StdoutFile); name == "echo" && got != big {
			t.Errorf("echo got %d bytes; want the %d of its standard input", len(got), len(big))
		}
	}
	s := playing(t, "echo")
	run(t, s)
	if got := read(t, s, runner.StdoutFile); got != "" {
		t.Errorf("without a file, standard input has %q; want nothing", got)
	}
}

// Row 42: a secret in our environment stays with us.
func TestTheEnvironmentIsOnlyWhatIsGiven(t *testing.T) {
	t.Setenv("DAEMON_SECRET", "s3cret")
	s := playing(t, "environ")
	run(t, s)
	got := strings.Fields(read(t, s, runner.StdoutFile))
	if want := append(slices.Clone(s.Env), runner.DirVariable+"="+s.Dir); !slices.Equal(got, want) {
		t.Errorf("environment is %q; want %q", got, want)
	}
}

func TestTheWorkingDirectoryIsTheRunsUnlessAnotherIsNamed(t *testing.T) {
	s := playing(t, "where")
	run(t, s)
	if got := strings.TrimSpace(read(t, s, runner.StdoutFile)); got != s.Dir {
		t.Errorf("working directory is %s; want %s", got, s.Dir)
	}
	s = playing(t, "where")
	s.Cwd = t.TempDir()
	run(t, s)
	if got := strings.TrimSpace(read(t, s, runner.StdoutFile)); got != s.Cwd {
		t.Errorf("working directory is %s; want %s", got, s.Cwd)
	}
}

func TestALinkInAResolvedWorkingDirectoryStartsNothing(t *testing.T) {
	s := playing(t, "where")
	s.Cwd, s.CwdResolved = t.TempDir(), true
	run(t, s)
	if got := strings.TrimSpace(read(t, s, runner.StdoutFile)); got != s.Cwd {
		t.Errorf("working directory is %s; want %s", got, s.Cwd)
	}
	s = playing(t, "where")
	parent := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(parent, "real"), 0o700), os.Mkdir(filepath.Join(parent, "real", "sub"), 0o700), os.Symlink("real", filepath.Join(parent, "link"))); err != nil {
		t.Fatal(err)
	}
	for cwd, want := range map[string]string{"link": "became a symbolic link", "link/sub": "became a symbolic link", "gone": "no such file"} {
		s.Cwd, s.CwdResolved = filepath.Join(parent, cwd), true
		if _, err := runner.Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run in %s = %v; want %s", cwd, err, want)
		}
	}
}

func TestASignalIsNamed(t *testing.T) {
	got := run(t, playing(t, "suicide"))
	if got.Code != -1 || got.Signal != "SIGKILL (9)" || got.Cause != "" {
		t.Errorf("Run(suicide) = %+v; want code -1, SIGKILL (9), no cause", got)
	}
}
