package runner_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/runner"
	"mailboxd/internal/sandbox"
	"mailboxd/internal/task"
)

func TestNothingIsLeftOfASandboxWhenItsKeeperIsKilled(t *testing.T) {
	s := boxed(t, playing(t, "hang, and say so"), sandbox.Settings{}, nil)
	word := fmt.Sprintf("boxed-%d", time.Now().UnixNano())
	s.Argv = append(s.Argv, word)
	s.Grace = time.Second
	k := keepers(t, t.TempDir(), "a")
	var killing sync.WaitGroup
	killing.Go(func() {
		if !awaitReady(t, s) {
			return
		}
		pid := processWith(word) // bubblewrap, or the agent below it
		for pid > 1 && !isKeeper(pid) {
			pid = parent(t, pid)
		}
		if pid <= 1 { // a signal to 0 is for this process group
			t.Error("there is no keeper")
			return
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	exit := keptRun(t, k, s)
	killing.Wait()
	if exit.Cause != task.CauseLost || exit.Sandboxed {
		t.Errorf("Run = %+v; want a lost run, which claims no sandbox", exit)
	}
	if pid := processWith(word); pid != 0 {
		t.Errorf("the process %d is left", pid)
	}
}

// isKeeper reports whether a process is a keeper of the test binary.
func isKeeper(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.HasPrefix(string(text), "keeper\x00keeper\x00")
}

func TestARunThatEndsBeforeItsSandboxIsCompleteClaimsNone(t *testing.T) {
	s := boxed(t, playing(t, "complains"), sandbox.Settings{}, nil)
	s.Sandbox.Program = filepath.Join(s.Dir, "bwrap") // has a process in its namespaces, and no mount yet
	script := "#!/bin/sh\neval \"echo '{\\\"child-pid\\\": $$}' >&$2\"\necho >\"$READY\"\nexec sleep 1000\n"
	if err := os.WriteFile(s.Sandbox.Program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var interrupting sync.WaitGroup
	interrupting.Go(func() {
		awaitReady(t, s)
		interrupt()
	})
	exit, err := runner.Run(ctx, s, nil)
	interrupting.Wait()
	if err != nil || exit.Cause != task.CauseInterrupted || exit.Sandboxed {
		t.Errorf("Run = %+v, %v; want it interrupted, and no sandbox claimed", exit, err)
	}
}

func TestASandboxLeavesNoTraceInAProject(t *testing.T) {
	project := t.TempDir()
	for _, dir := range []string{".git/hooks", "src"} {
		if err := os.MkdirAll(filepath.Join(project, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".git/config", ".git/hooks/pre-commit", "src/main.c"} {
		writeFile(t, filepath.Join(project, name))
	}
	before := treeOf(t, project)
	k := keepers(t, t.TempDir(), "a")
	const runs = 100
	var took []time.Duration
	for range runs {
		s := playing(t, "says nothing")
		s.Argv = []string{"/usr/bin/true"}
		s = boxed(t, s, sandbox.Settings{}, func(r *sandbox.Run) {
			r.Home, r.Cwd = os.Getenv("HOME"), sandbox.Path{Name: project, Real: project}
			r.Write = []sandbox.Path{{Name: project + "/.git", Real: project + "/.git"}}
			r.Fixed = []string{project + "/.git/config", project + "/.git/hooks"}
		})
		began := time.Now()
		if exit := keptRun(t, k, s); exit.Code != 0 || !exit.Sandboxed {
			t.Fatalf("Run = %+v; want 0 in a sandbox: %s", exit, read(t, s, runner.StderrFile))
		}
		took = append(took, time.Since(began))
	}
	if after := treeOf(t, project); after != before {
		t.Errorf("the project changed from\n%s to\n%s", before, after)
	}
	slices.Sort(took)
	t.Logf("median of %d runs: %v", runs, took[runs/2])
}

// treeOf describes all files of a directory, with their times.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var sum [sha256.Size]byte
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(text)
		}
		fmt.Fprintf(&all, "%s %v %v %x\n", path, info.Mode(), info.ModTime(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
