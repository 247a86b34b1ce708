package runner

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// An Enclosure is the sandbox of a process that the caller starts and waits for, such as a
// worker.
type Enclosure struct {
	box   *box
	files []*os.File // for the process, from 3 on
}

// Enclose puts a command into the sandbox of a Spec, in which the other fields but Dir don't
// count. The process ends with its parent. The caller has to call Release and Close.
func Enclose(cmd *exec.Cmd, s Spec) (_ *Enclosure, err error) {
	if s.Sandbox.Program != WeakerProgram { // the weaker sandbox keeps the signal that the caller asks for
		s.Sandbox.Options = append([]string{"--die-with-parent"}, s.Sandbox.Options...)
	}
	b, err := s.openBox(nil, -1)
	if err != nil {
		return nil, err
	}
	e := &Enclosure{box: b}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	attr := syscall.ProcAttr{Files: []uintptr{0}, Sys: cmd.SysProcAttr}
	cmd.Path, cmd.Args = b.wrap(slices.Clone(cmd.Args), &attr)
	cmd.Dir = attr.Dir
	for _, fd := range b.files {
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, fmt.Errorf("prepare sandbox: %w", err)
		}
		e.files = append(e.files, os.NewFile(uintptr(again), "sandbox"))
	}
	cmd.ExtraFiles = e.files
	return e, nil
}

// Release closes what the process has taken over, after its start.
func (e *Enclosure) Release() {
	for _, f := range e.files {
		_ = f.Close() // nothing was written by this process
	}
	e.files = nil
	e.box.release()
}

// Began reports, after the end of the process, whether the command ran in the sandbox. Signaled
// says that a signal ended the process.
func (e *Enclosure) Began(signaled bool) bool {
	status := e.box.readStatus()
	return status.Began || signaled && status.Init != 0
}

// OutOfMemory reports whether the kernel killed a process because of the limit of the sandbox.
func (e *Enclosure) OutOfMemory() bool { return e.box.group != nil && e.box.group.OutOfMemory() }

// Close removes the sandbox, after the end of the process.
func (e *Enclosure) Close() {
	e.Release()
	e.box.close()
}
