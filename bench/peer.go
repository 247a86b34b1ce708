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

// A desk is where a peer works: task lines, or what it takes instead, and
// result files.
type desk struct {
	dir     string
	results *tally
}

func (d desk) path(name string) string { return filepath.Join(d.dir, name) }

// beside measures a peer: from go, which gives it the first task, to the last
// result file. Prepare may return a function that ends what it started.
func beside(how uint32, prepare func(context.Context, desk, int) (end func() error, err error), submit func(context.Context, desk, int) error) func(context.Context, string, int) (time.Duration, error) {
	return func(ctx context.Context, dir string, count int) (took time.Duration, err error) {
		d := desk{dir: dir}
		for _, name := range []string{"tasks", "results", "tmp"} {
			if err := os.Mkdir(d.path(name), 0o700); err != nil {
				return 0, err
			}
		}
		if d.results, err = newTally(d.path("results"), how); err != nil {
			return 0, err
		}
		defer d.results.close()
		end, err := prepare(ctx, d, count)
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		err = submit(ctx, d, count)
		if err == nil {
			err = d.results.all(ctx, count)
		}
		took = time.Since(begin)
		if err := errors.Join(err, end()); err != nil {
			return 0, err
		}
		return took, verify(d.path("results"), count)
	}
}

// background starts a program, and returns what ends it and all that it
// started.
func background(ctx context.Context, cmd *exec.Cmd) (end func() error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	abandon := context.AfterFunc(ctx, kill)
	return func() error {
		abandon()
		kill()
		if err := cmd.Wait(); err != nil && !killed(err) {
			return err
		}
		return nil
	}, nil
}

func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signaled()
}
