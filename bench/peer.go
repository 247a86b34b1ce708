package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A peerClient has the paths of a peer: its input, such as task lines, and its result files.
type peerClient struct {
	dir     string
	results *tally
}

func (d peerClient) path(name string) string { return filepath.Join(d.dir, name) }

// An ending stops the processes of a peer, and returns their processor time; 0 if unknown.
type ending func() (time.Duration, error)

// beside measures a peer, from the first submitted task to the last result file.
func beside(how uint32, prepare func(context.Context, peerClient) (ending, error), submit func(context.Context, peerClient, int) error) attempt {
	return func(ctx context.Context, dir string, count int) (took effort, err error) {
		d := peerClient{dir: dir}
		for _, name := range []string{"tasks", "results", "tmp"} {
			if err := os.Mkdir(d.path(name), 0o700); err != nil {
				return took, err
			}
		}
		if d.results, err = newTally(d.path("results"), how); err != nil {
			return took, err
		}
		defer d.results.close()
		end, err := prepare(ctx, d)
		if err != nil {
			return took, err
		}
		begin := time.Now()
		err = submit(ctx, d, count)
		if err == nil {
			err = d.results.all(ctx, count)
		}
		took.wall = time.Since(begin)
		cpu, failed := end()
		if err := errors.Join(err, failed); err != nil {
			return took, err
		}
		took.cpu = cpu
		return took, verify(d.path("results"), count)
	}
}

// background starts a program, and returns its ending, which also stops its children.
func background(ctx context.Context, cmd *exec.Cmd) (ending, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	abandon := context.AfterFunc(ctx, kill)
	return func() (time.Duration, error) {
		abandon()
		kill()
		if err := cmd.Wait(); err != nil && !killed(err) {
			return 0, err
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}, nil
}

// pipeline is background for programs that don't wait for each other, so that their processor
// time is unknown.
func pipeline(ctx context.Context, cmd *exec.Cmd) (ending, error) {
	end, err := background(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return func() (time.Duration, error) { _, err := end(); return 0, err }, nil
}

func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signaled()
}
