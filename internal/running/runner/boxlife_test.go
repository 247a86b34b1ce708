package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
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
