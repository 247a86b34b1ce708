package runnerstorm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"mailboxd/internal/testtools/programs"
)

// An actor is a program that is started again whenever it ends.
type actor struct {
	storm   *storm
	name    string
	command []string
	points  []string // where it may die
	dice    *rand.Rand

	mu      sync.Mutex // guards process and spared
	process *os.Process
	spared  bool // it is killed no more
}

// act starts the program again and again, until ctx ends. Then it is asked to end.
func (a *actor) act(ctx context.Context) error {
	for ctx.Err() == nil {
		cmd, err := a.start()
		if err != nil {
			return err
		}
		end := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		err = cmd.Wait()
		end()
		if exit, ok := errors.AsType[*exec.ExitError](err); ctx.Err() == nil && (!ok || !exit.Sys().(syscall.WaitStatus).Signaled()) {
			return fmt.Errorf("%s gave up: %w; see %s", a.name, err, a.storm.path(a.name+".log"))
		}
		if ctx.Err() == nil {
			a.storm.died(a.name)
		}
	}
	return nil
}

// start begins a life. Of two lives that may end, one ends at a fault point.
func (a *actor) start() (*exec.Cmd, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	once, fault := a.storm.path(a.name+".died"), ""
	if err := os.RemoveAll(once); err != nil {
		return nil, err
	}
	if len(a.points) > 0 && !a.spared && a.dice.IntN(2) == 0 {
		fault = fmt.Sprintf("%s:%d", a.points[a.dice.IntN(len(a.points))], 1+a.dice.IntN(6)*a.dice.IntN(6))
	}
	log, err := os.OpenFile(a.storm.path(a.name+".log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(a.command[0], a.command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = a.storm.dir, log, log
	cmd.Env = append(a.storm.environment(), "MAILBOXD_FAULT="+fault, "MAILBOXD_FAULT_ONCE="+once)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a.process = cmd.Process
	return cmd, nil
}

// kill kills the program, at whatever it does.
func (a *actor) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process != nil {
		_ = a.process.Kill()
	}
}

// spare lets the program live from now on: it is started anew, without a fault.
func (a *actor) spare() {
	a.mu.Lock()
	a.spared = true
	a.mu.Unlock()
	a.kill()
}

// keepers returns the processes that keep the runs of this runner.
func (a *actor) keepers() []int {
	dir := filepath.Join(a.storm.path(a.name+"-state"), "keepers")
	return programs.Processes(func(command, _ string) bool { return strings.Contains(command, dir) })
}
