package agent_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/host"
	"mailboxd/internal/sandboxing/sandbox"
)

func init() {
	// probe answers each line with what it can reach, and dies when it reads "die".
	cast["probe"] = func(args []string) {
		lines := bufio.NewReader(os.Stdin)
		for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
			if strings.Contains(line, `"die"`) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			if strings.Contains(line, `"hang"`) {
				select {}
			}
			secret := "held"
			if _, err := os.ReadFile(args[0]); err == nil {
				secret = "read"
			}
			work := "held"
			if err := os.WriteFile(filepath.Join(os.Getenv("MAILBOX_RUN_DIR"), "work", "x"), nil, 0o600); err == nil {
				work = "written"
			}
			id := strings.Split(strings.SplitAfter(line, `"task_id":"`)[1], `"`)[0]
			fmt.Printf("{\"task_id\":%q,\"status\":\"ok\",\"output\":{\"summary\":\"secret %s, work %s, pid %d\",\"actions\":[]}}\n", id, secret, work, os.Getpid())
		}
	}
	// serve has a sandboxed worker answer one task, prints the answer and waits.
	cast["serve a sandboxed worker"] = func(args []string) {
		b := agent.Binding{ID: "a", Worker: &agent.Worker{Command: args[1:]}, Sandbox: sandbox.Settings{Profile: sandbox.Workspace}}
		agents, err := agent.New([]agent.Binding{b}, agent.Options{WorkerDir: args[0]})
		if err != nil {
			panic(err)
		}
		t, _ := envelope.DecodeTask([]byte(request("")), envelope.Strict)
		t.Agent = "a"
		got := agents.Run(context.Background(), task.Job{Task: t}, nil)
		fmt.Println(got.Result.Output.Summary, got.Result.Error.Message)
		select {}
	}
}

// probing returns the binding of a worker in a sandbox that looks for a secret.
func probing(t *testing.T) agent.Binding {
	t.Helper()
	if _, err := host.FindBubblewrap(); err != nil {
		t.Skip(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := working(t, "probe", secret)
	b.Sandbox = sandbox.Settings{Profile: sandbox.Workspace}
	return b
}

func TestASandboxedWorkerDoesSeveralTasksInOneSandbox(t *testing.T) {
	agents := registry(t, probing(t))
	for range 3 {
		got := agents.Run(t.Context(), lineJob(t, ""), nil)
		if want := "secret held, work written, pid 2"; got.Result.Output.Summary != want {
			t.Fatalf("the worker answered %q, %+v; want %q", got.Result.Output.Summary, got.Result.Error, want)
		}
		for _, c := range []envelope.Control{envelope.ControlFilesystem, envelope.ControlNetwork, envelope.ControlMailbox} {
			if level := got.Result.Output.Enforcement[c]; level != envelope.LevelKernel {
				t.Errorf("the level of %s is %q; want %q", c, level, envelope.LevelKernel)
			}
		}
	}
}

func TestAWorkerWithoutASandboxClaimsNone(t *testing.T) {
	b := probing(t)
	b.Sandbox = sandbox.Settings{}
	got := registry(t, b).Run(t.Context(), lineJob(t, ""), nil)
	if _, claimed := got.Result.Output.Enforcement[envelope.ControlFilesystem]; claimed || !strings.HasPrefix(got.Result.Output.Summary, "secret read") {
		t.Errorf("the worker answered %q, with %v; want that it reads the secret", got.Result.Output.Summary, got.Result.Output.Enforcement)
	}
}

func TestASandboxedWorkerThatDiesClaimsNothingAndIsReplaced(t *testing.T) {
	agents := registry(t, probing(t))
	for _, test := range []struct {
		line string
		kind envelope.Kind
	}{{`, "metadata": {"x": "die"}`, envelope.AgentCrashed}, {"", ""}, {`, "metadata": {"x": "hang"}`, envelope.Timeout}, {"", ""}} {
		j := lineJob(t, test.line)
		if test.kind == envelope.Timeout {
			j.Timeout = 100 * time.Millisecond
		}
		got := agents.Run(t.Context(), j, nil)
		if got.Result.Error.Kind != test.kind {
			t.Errorf("%s ended with %+v; want %q", test.line, got.Result.Error, test.kind)
		}
		if level := got.Result.Output.Enforcement[envelope.ControlFilesystem]; (level == envelope.LevelKernel) != (test.kind == "") {
			t.Errorf("%s: the level of the file system is %q", test.line, level)
		}
	}
}

func TestAWorkerWhoseSandboxFailsRunsNothing(t *testing.T) {
	b := probing(t)
	b.Cwd = "/proc/self/nonexistent"
	agents := registry(t, b)
	got := agents.Run(t.Context(), lineJob(t, ""), nil)
	if got.Result.Error.Kind != envelope.SandboxUnavailable || got.Retry || got.Result.Status != envelope.Rejected {
		t.Errorf("Run = %+v, again %v; want %s and no retry", got.Result.Error, got.Retry, envelope.SandboxUnavailable)
	}
}

// A daemon that is killed leaves no sandboxed worker, although it is in namespaces of its own.
func TestAKilledDaemonLeavesNoSandboxedWorker(t *testing.T) {
	b := probing(t)
	dir := t.TempDir()
	daemon := exec.Command(b.Worker.Command[0], append([]string{"play", "serve a sandboxed worker", dir}, b.Worker.Command...)...)
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "secret held") {
		t.Errorf("the worker of the daemon answered %q, %v", line, err)
	}
	left := processesIn(dir)
	if len(left) < 2 {
		t.Errorf("the sandbox has the processes %v; want bubblewrap and the worker", left)
	}
	var ends []unix.PollFd
	for _, pid := range left {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	daemon.Wait()
	for i := range ends {
		const patience = 10_000
		if n, err := unix.Poll(ends[i:i+1], patience); n != 1 {
			t.Errorf("the process %d is left (%v)", left[i], err)
		}
	}
}

// processesIn lists the processes whose environment names a directory below one.
func processesIn(dir string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "MAILBOX_RUN_DIR="+dir) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}
