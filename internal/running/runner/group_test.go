package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/cgroup"
	"mailboxd/internal/sandboxing/sandbox"
)

func init() {
	roles["uses memory"] = func() {
		var all [][]byte
		for range 256 {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			all = append(all, block)
		}
		fmt.Print(len(all))
	}
	roles["starts processes"] = func() {
		for n := range 1000 {
			child, err := os.StartProcess("/usr/bin/sleep", []string{"sleep", "100"}, &os.ProcAttr{})
			if err != nil {
				fmt.Print(n, " ", err)
				return
			}
			child.Release()
		}
		fmt.Print("no limit")
	}
}

// requireGroup skips a test where no cgroup is delegated to this process, and returns it.
func requireGroup(t *testing.T) string {
	t.Helper()
	parent, err := cgroup.Delegated(os.Getpid())
	if err == nil {
		err = cgroup.CanLimit(parent, cgroup.Limits{Memory: 1, Processes: 1})
	}
	if err != nil {
		t.Skip(err)
	}
	return parent
}

// groupsOf lists the cgroups of runs.
func groupsOf(t *testing.T, parent string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(parent, "run-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestARunThatUsesMoreMemoryThanItsSandboxHasEndsAsSuch(t *testing.T) {
	parent := requireGroup(t)
	k := keepers(t, t.TempDir(), "a")
	limits := cgroup.Limits{Memory: 96 << 20}
	for name, box := range map[string]func(*testing.T) runner.Spec{
		"bubblewrap": func(t *testing.T) runner.Spec { return boxed(t, playing(t, "uses memory"), sandbox.Settings{}, nil) },
		"weaker": func(t *testing.T) runner.Spec {
			return confined(t, playing(t, "uses memory"), sandbox.Settings{Profile: sandbox.Workspace}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := box(t)
			if exit := keptRun(t, k, s); exit.Code != 0 || read(t, s, "stdout") != "256" {
				t.Errorf("without a limit, Run = %+v: %s", exit, read(t, s, "stderr"))
			}
			s = box(t)
			s.Sandbox.Limits = limits
			exit := keptRun(t, k, s)
			if exit.Cause != task.CauseMemory || read(t, s, "stdout") != "" || !exit.Sandboxed && !exit.Confined {
				t.Errorf("Run = %+v; want the cause %s", exit, task.CauseMemory)
			}
		})
	}
	s := boxed(t, playing(t, "exits 75"), sandbox.Settings{}, nil)
	s.Sandbox.Limits = limits
	if exit := keptRun(t, k, s); exit.Code != 75 || exit.Cause != "" {
		t.Errorf("Run(exits 75) = %+v; want 75, within its memory", exit)
	}
	if left := groupsOf(t, parent); len(left) > 0 {
		t.Errorf("the cgroups %v are left", left)
	}
}

func TestARunCannotStartMoreProcessesThanItsSandboxAllows(t *testing.T) {
	parent := requireGroup(t)
	s := boxed(t, playing(t, "starts processes"), sandbox.Settings{}, nil)
	s.Sandbox.Limits = cgroup.Limits{Processes: 60}
	exit := run(t, s)
	if out := read(t, s, "stdout"); !strings.Contains(out, syscall.EAGAIN.Error()) || exit.Code != 0 {
		t.Errorf("the agent printed %q and ended with %+v; want that it started no more processes", out, exit)
	}
	if left := groupsOf(t, parent); len(left) > 0 {
		t.Errorf("the cgroups %v are left", left)
	}
}

func TestTheGroupOfAKilledMakerIsRemovedByTheNextRun(t *testing.T) {
	parent := requireGroup(t)
	const nobody = 1 << 22 // more than any process number
	abandoned := filepath.Join(parent, fmt.Sprintf("run-%d-1", nobody))
	if err := os.Mkdir(abandoned, 0o700); err != nil {
		t.Fatal(err)
	}
	s := boxed(t, playing(t, "exits 75"), sandbox.Settings{}, nil)
	s.Sandbox.Limits = cgroup.Limits{Processes: 60}
	run(t, s)
	if left := groupsOf(t, parent); len(left) > 0 {
		t.Errorf("the cgroups %v are left", left)
	}
}

func TestASandboxWithLimitsNeedsADelegatedGroup(t *testing.T) {
	if _, err := cgroup.Delegated(os.Getpid()); err == nil {
		t.Skip("this process has one")
	}
	s := boxed(t, playing(t, "complains"), sandbox.Settings{}, nil)
	s.Sandbox.Limits = cgroup.Limits{Memory: 1 << 30}
	_, err := runner.Run(t.Context(), s, nil)
	if err == nil || !strings.Contains(err.Error(), "docs/sandbox.md") {
		t.Errorf("Run = %v; want what to do", err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, runner.StderrFile)); err == nil {
		t.Error("a process was started")
	}
}
