package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// callsAlone names the contender that makes the system calls that the promises require for a
// task, and nothing else. It is no upper bound: it shares no sync between processes.
const callsAlone = "the system calls of a task alone"

// alone does tasks with a process each, two at a time.
func alone(command []string) attempt {
	return func(ctx context.Context, dir string, count int) (took effort, err error) {
		b, err := newBare(dir)
		if err != nil {
			return took, err
		}
		defer b.close()
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return took, err
		}
		defer null.Close()
		took, err = ownEffort(func() error {
			return sideBySide(ctx, 2, count, func(n int) error { return b.process(id(n), null.Fd(), command) })
		})
		if err != nil {
			return took, err
		}
		return took, verify(b.path("results"), count)
	}
}

// process does one task: its directory, its request, the intent, the process with its outputs,
// the end, the result.
func (b *bare) process(id string, null uintptr, command []string) error {
	run := b.path("runs/" + id + "/1.1")
	if err := errors.Join(unix.Mkdir(filepath.Dir(run), 0o700), unix.Mkdir(run, 0o700)); err != nil {
		return err
	}
	if err := os.WriteFile(run+"/request.json", make([]byte, requestSize), 0o600); err != nil {
		return err
	}
	files := []uintptr{null}
	for _, name := range []string{"/stdout", "/stderr"} {
		fd, err := unix.Open(run+name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return fmt.Errorf("create %s%s: %w", run, name, err)
		}
		defer unix.Close(fd)
		files = append(files, uintptr(fd))
	}
	if err := b.commit(intentSize); err != nil {
		return err
	}
	if err := execute(command, files); err != nil {
		return err
	}
	if err := b.commit(endSize); err != nil {
		return err
	}
	return b.put(id)
}

// execute runs a command in a session of its own, with the fewest calls.
func execute(command []string, files []uintptr) error {
	pid, err := syscall.ForkExec(command[0], command, &syscall.ProcAttr{Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	var end syscall.WaitStatus
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(pid, &end, 0, nil)
	}
	if err == nil && end != 0 {
		err = fmt.Errorf("wait status %#x", end)
	}
	return err
}
