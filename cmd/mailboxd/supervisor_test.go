package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/watcher"
)

// A manager stands in for systemd where there is none: it listens for what the
// service says, and stops it as KillMode=process does, by a signal to the
// daemon's process alone.
type manager struct {
	t      *testing.T
	dir    string
	socket *net.UnixConn
	env    []string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "mb") // a socket's name must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeMailbox(t, dir) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &manager{t: t, dir: dir, socket: socket, env: append(os.Environ(),
		"NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=100000",
		"AINL_AGENT_ROOT="+filepath.Join(dir, "box"), "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "HOME="+dir, "GO_ON="+filepath.Join(dir, "go-on"),
	)}
}

// removeMailbox ends all processes of a directory, which could still write to it, and removes it.
func removeMailbox(t *testing.T, dir string) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left := slices.Concat(processesWith("cmdline", dir+"/"), processesWith("environ", "MAILBOX_RUN_DIR="+dir+"/"))
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Errorf("remove the mailbox of a test: %v", err)
	}
}

func (m *manager) run(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("mailboxd", args...)
	cmd.Env = m.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("mailboxd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start starts the service and waits until it says that it is ready.
func (m *manager) start() *exec.Cmd {
	m.t.Helper()
	serve := exec.Command("mailboxd", "serve", "--config", filepath.Join(m.dir, "config.yaml"))
	serve.Env, serve.Stderr = m.env, os.Stderr
	if err := serve.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { serve.Process.Kill() })
	m.await("READY=1")
	return serve
}

// stop stops the service as systemd would, and waits for its end.
func (m *manager) stop(serve *exec.Cmd) {
	m.t.Helper()
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		m.t.Fatal(err)
	}
	m.await("STOPPING=1")
	if err := serve.Wait(); err != nil {
		m.t.Fatalf("serve: %v; want exit 0", err)
	}
}

// await reads what the service says until it says so.
func (m *manager) await(state string) {
	m.t.Helper()
	m.socket.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for message := make([]byte, 4096); ; {
		n, err := m.socket.Read(message)
		if err != nil {
			m.t.Fatalf("the service did not say %s: %v", state, err)
		}
		if strings.HasPrefix(string(message[:n]), state) {
			return
		}
	}
}

// awaitFile waits for a file and returns what it holds.
func (m *manager) awaitFile(name string) string {
	m.t.Helper()
	ctx, found := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer found()
	path, text := filepath.Join(m.dir, name), ""
	err := watcher.Watch(ctx, []string{filepath.Dir(path)}, 50*time.Millisecond, func() {
		if content, err := os.ReadFile(path); err == nil && len(content) > 0 {
			text = string(content)
			found()
		}
	})
	if err != nil || text == "" {
		m.t.Fatalf("waited two minutes for %s: %v", path, err)
	}
	return text
}

func TestARestartOfTheServiceDoesNotDisturbARunningAgent(t *testing.T) {
	m := newManager(t)
	config := "agents: [{id: worker, exec: {command: [agent, until-told], env: [GO_ON]}}]\n"
	if err := os.WriteFile(filepath.Join(m.dir, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	first := m.start()
	m.await("WATCHDOG=1")
	m.run("send", "--agent", "worker", "--type", "work", "--id", "t1")
	var pid int
	if _, err := fmt.Sscanf(m.awaitFile("go-on.started"), "process %d", &pid); err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.await("RELOADING=1")
	m.await("READY=1")
	m.stop(first)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the agent, process %d: %v; want it to live on", pid, err)
	}

	second := m.start()
	if err := os.WriteFile(filepath.Join(m.dir, "go-on"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result := m.awaitFile("box/results/t1.json"); !strings.Contains(result, "was told to go on") {
		t.Errorf("result %s; want what the agent said", result)
	}
	m.stop(second)
	if got := strings.Count(m.run("show", "t1", "--json"), `"task.finished"`); got != 1 {
		t.Errorf("the run finished %d times; want once", got)
	}
	if got := strings.Count(m.awaitFile("go-on.started"), "process"); got != 1 {
		t.Errorf("the agent began %d times; want once", got)
	}
}
