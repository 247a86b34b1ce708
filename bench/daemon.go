package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A daemon serves a mailbox of its own with a user's configuration: the defaults, except for
// the number of concurrent runs.
type daemon struct {
	dir     string // the directory with all its files
	program string
	daemon  *exec.Cmd
	notices *net.UnixConn // receives its message that it is ready
}

func (h *daemon) tasks() string   { return filepath.Join(h.dir, "box/tasks/bench.jsonl") }
func (h *daemon) results() string { return filepath.Join(h.dir, "box/results") }
func (h *daemon) state() string   { return filepath.Join(h.dir, "state") }

// A plan has the settings that differ from the defaults.
type plan struct {
	agent string // its binding, in YAML
	slots int    // concurrent tasks
	queue int    // 0: the default
	more  string // sections of the configuration, in YAML
}

const configuration = `root: %[1]s/box
state_dir: %[1]s/state
stop_agents_on_exit: true
limits: {concurrency: %[2]d, queue: %[3]d, shutdown_grace: 1s}
notice: {command: []}
agents:
  - {id: bench, %[4]s}
`

// processes binds the agent to a command, with a process for each task.
func processes(slots int, command ...string) plan {
	return plan{slots: slots, agent: fmt.Sprintf("exec: {command: ['%s'], output: text, stdin: none}, concurrency: %d",
		strings.Join(command, "', '"), slots)}
}

// resident binds the agent to one worker process.
func resident(inFlight int, command ...string) plan {
	return plan{slots: inFlight, agent: fmt.Sprintf("worker: {command: ['%s'], count: 1, in_flight: %d}",
		strings.Join(command, "', '"), inFlight)}
}

// newDaemon sets up a mailbox in an empty directory. It does not start a daemon.
func (l *lab) newDaemon(dir string, p plan) (*daemon, error) {
	h := &daemon{dir: dir, program: l.tools.mailboxd}
	for _, d := range []string{"box/tasks", "box/results", "state", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	if p.queue == 0 {
		p.queue = 100_000
	}
	text := fmt.Sprintf(configuration, dir, p.slots, p.queue, p.agent) + p.more
	return h, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600)
}

// command returns a command of mailboxd for this mailbox.
func (h *daemon) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, append(args, "--config", filepath.Join(h.dir, "config.yaml"))...)
	cmd.Env = append(h.environment(), "XDG_RUNTIME_DIR="+filepath.Join(h.dir, "run"), "NOTIFY_SOCKET="+filepath.Join(h.dir, "run/ready"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// environment returns the environment of mailboxd, without the caller's configuration and
// exported variables: AINL_AGENT_ROOT could name a mailbox that is in use.
func (h *daemon) environment() []string {
	own := []string{"HOME=" + h.dir}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == "PATH" || name == "TMPDIR" || strings.HasPrefix(name, "GO") {
			own = append(own, variable)
		}
	}
	return own
}

// start starts the daemon without waiting for it.
func (h *daemon) start(ctx context.Context) (err error) {
	ready := filepath.Join(h.dir, "run/ready")
	_ = os.Remove(ready)
	if h.notices, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: ready, Net: "unixgram"}); err != nil {
		return fmt.Errorf("listen for the daemon: %w", err)
	}
	log, err := os.OpenFile(h.logPath(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	h.daemon = h.command(ctx, "serve")
	h.daemon.Stderr = log
	return h.daemon.Start()
}

func (h *daemon) logPath() string { return filepath.Join(h.dir, "serve.log") }

// awaitReady blocks until the daemon reports that it is ready.
func (h *daemon) awaitReady(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = h.notices.SetReadDeadline(time.Now()) })()
	text := make([]byte, 4096)
	for {
		_ = h.notices.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := h.notices.Read(text)
		if err != nil {
			return fmt.Errorf("wait until the daemon is ready: %w\n%s", err, h.lastWords())
		}
		if strings.Contains(string(text[:n]), "READY=1") {
			return nil
		}
	}
}

// spent returns the processor time of the daemon, its keeper, and all their processes.
func (h *daemon) spent() (cpu time.Duration) {
	keeper, _ := h.keeper()
	all := map[int]bool{h.daemon.Process.Pid: true, keeper: true}
	for _, worker := range children(h.daemon.Process.Pid) {
		all[worker] = true
	}
	for pid := range all {
		cpu += processorTime(pid)
	}
	return cpu
}

// stop stops the daemon and its agents. A failed exit is an error.
func (h *daemon) stop() error {
	defer h.notices.Close()
	signalled := h.daemon.Process.Signal(syscall.SIGTERM)
	if err := h.daemon.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop the daemon: %w (%v)\n%s", err, signalled, h.lastWords())
	}
	return nil
}

// lastWords returns the end of the daemon's log.
func (h *daemon) lastWords() string {
	raw, _ := os.ReadFile(h.logPath())
	return string(raw[max(0, len(raw)-2000):])
}
