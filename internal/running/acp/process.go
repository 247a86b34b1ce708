package acp

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"mailboxd/internal/running/runner"
)

// A process is the agent's.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	stderr *runner.Tail
	exited chan struct{}
	wait   sync.WaitGroup
}

// startProcess starts the agent in a process group of its own, so that all of it can be ended.
func startProcess(o Options) (*process, error) {
	p := &process{stderr: &runner.Tail{Also: o.Stderr}, exited: make(chan struct{})}
	p.cmd = exec.Command(o.Argv[0], o.Argv[1:]...)
	p.cmd.Dir, p.cmd.Stderr = o.Cwd, p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second // for processes of the agent that keep standard error open
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe() // not StdoutPipe, which Wait closes before all is read
	if err != nil {
		return nil, err
	}
	p.stdout, p.cmd.Stdout = out, in
	err = p.cmd.Start()
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	p.wait.Go(func() {
		_ = p.cmd.Wait() // ending reads the state
		_ = p.stdout.SetReadDeadline(time.Now().Add(time.Second))
		close(p.exited)
	})
	return p, nil
}

// stop ends the input of the agent, and its processes if it doesn't end then.
func (p *process) stop(grace time.Duration) {
	_ = p.stdin.Close()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-p.exited:
		case <-time.After(grace):
			_ = syscall.Kill(-p.cmd.Process.Pid, signal)
		}
	}
	p.wait.Wait()
	p.awaitGroup()
}

// lingering is how long processes that the agent started may take to end after it. The keeper of the
// run ends those that remain, and reports them.
const lingering = 2 * time.Second

// awaitGroup waits for the other processes in the agent's group, such as Claude Code below its adapter.
func (p *process) awaitGroup() {
	for end := time.Now().Add(lingering); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(-p.cmd.Process.Pid, 0) != nil {
			return
		}
	}
}

// ending says how the agent ended, if it ended by itself, and what it last said on standard error.
// The agent has ended.
func (p *process) ending(itself bool) (words string) {
	if itself {
		words = fmt.Sprintf(" (%v)", p.cmd.ProcessState)
	}
	if last := p.stderr.Text(); last != "" {
		words += "; its standard error ends with: " + last
	}
	return words
}
