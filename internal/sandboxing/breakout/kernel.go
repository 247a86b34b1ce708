package breakout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// openForWriting opens a file for writing, and writes nothing. Permissions don't show whether the
// kernel lets a process write: it may ignore them, and asks further questions.
func openForWriting(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// writeSettings opens every file of the kernel below /proc and /sys for writing, except for those
// of processes.
func writeSettings(Targets) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	dirs := []string{"/proc/sys"} // the first success ends the attempt
	for _, e := range entries {
		name := e.Name()
		if _, process := strconv.Atoi(name); process == nil || e.Type()&fs.ModeSymlink != 0 || name == "sys" {
			continue
		}
		dirs = append(dirs, "/proc/"+name)
	}
	return writeBelow(append(dirs, "/sys")...)
}

// errReached ends a walk.
var errReached = errors.New("reached")

// writeBelow opens the files below some directories for writing, until one can be.
func writeBelow(dirs ...string) error {
	failed := errAbsent
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
				return nil // closed to this process
			}
			if failed = openForWriting(path); failed == nil {
				return errReached
			}
			return nil
		})
		if errors.Is(err, errReached) {
			return nil
		}
	}
	return failed
}

// settingsOfMachine are files that change the whole machine, and none of a namespace.
var settingsOfMachine = []string{"kernel/core_pattern", "kernel/modprobe", "vm/overcommit_memory", "fs/file-max"}

// OwnProcName is the argument that makes this program try settings in namespaces of its own.
const OwnProcName = "breakout-proc"

// writeThroughOwnProc makes a /proc in namespaces of its own, which hides nothing.
func writeThroughOwnProc(Targets) error {
	dir, err := os.MkdirTemp("", "mailboxd-breakout-*")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	return inOwnNamespaces(unix.CLONE_NEWNS|unix.CLONE_NEWPID, OwnProcName, dir)
}

// OwnProc is the process of the attempt with a /proc of its own. Its argument is a directory.
func OwnProc(dirs []string) error {
	if len(dirs) != 1 {
		return errors.New("break out: want a directory")
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := unix.Mount("proc", dirs[0], "proc", 0, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	return each(settingsOfMachine, func(name string) error {
		return openForWriting(filepath.Join(dirs[0], "sys", name))
	})
}

// CapabilitiesName is the argument that makes this program give a file capabilities, in a user
// namespace of its own.
const CapabilitiesName = "breakout-capabilities"

// giveCapabilities gives a file capabilities that count outside of the sandbox: any user who
// starts it there gets them. Those that an ordinary user can give count for nobody else.
func giveCapabilities(t Targets) error {
	if !t.Root {
		return errAbsent
	}
	path, err := newFile()
	if err != nil {
		return err
	}
	defer os.Remove(path)
	if err := GiveCapabilities([]string{path}); err == nil {
		return nil
	}
	return inOwnNamespaces(0, CapabilitiesName, path)
}

// GiveCapabilities is the process of the attempt with capabilities. Its argument is a file.
func GiveCapabilities(paths []string) error {
	return each(paths, func(path string) error {
		// struct vfs_cap_data of version 2 with CAP_CHOWN
		data := []byte{0x01, 0, 0, 0x02, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		return os.NewSyscallError("setxattr", unix.Setxattr(path, "security.capability", data, 0))
	})
}

// newFile makes a file in the working directory, or where the process may.
func newFile() (string, error) {
	for _, dir := range []string{".", os.Getenv("TMPDIR"), "/tmp"} {
		if f, err := os.CreateTemp(dir, "mailboxd-breakout-*"); err == nil {
			return f.Name(), f.Close()
		}
	}
	return "", errAbsent
}

// setIDBits are the bits of a file that start it as its owner and its group.
const setIDBits = unix.S_ISUID | unix.S_ISGID

// makeSetID makes a file with these bits, in each way that the kernel has.
func makeSetID(Targets) error {
	path, err := newFile()
	if err != nil {
		return err
	}
	defer os.Remove(path)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	failed := errAbsent
	for _, mode := range []uint32{unix.S_ISUID | 0o755, unix.S_ISGID | 0o755} {
		for _, set := range slices.Concat([]func() error{
			func() error { return unix.Chmod(path, mode) },
			func() error { return unix.Fchmod(int(f.Fd()), mode) },
			func() error { return unix.Fchmodat(unix.AT_FDCWD, path, mode, 0) },
			func() error { return unix.Fchmodat(unix.AT_FDCWD, path, mode, unix.AT_SYMLINK_NOFOLLOW) }, // fchmodat2
		}, makeAgain(path, mode)) {
			if failed = set(); failed != nil {
				continue
			}
			if info, err := os.Stat(path); err == nil && info.Sys().(*syscall.Stat_t).Mode&setIDBits != 0 {
				return nil
			}
			failed = errors.New("the bits are not set")
		}
	}
	return failed
}

// makeAgain returns ways to make a file with a mode.
func makeAgain(path string, mode uint32) []func() error {
	made := func(open func() (int, error)) func() error {
		return func() error {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			fd, err := open()
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}
	}
	return []func() error{
		made(func() (int, error) { return unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, mode) }),
		made(func() (int, error) {
			return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, Mode: uint64(mode)})
		}),
		made(func() (int, error) {
			fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY, mode)
			if err == nil {
				err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
			}
			return fd, err
		}),
		made(func() (int, error) {
			if err := unix.Mknod(path, unix.S_IFREG|mode, 0); err != nil {
				return -1, err
			}
			return unix.Open(path, unix.O_RDONLY, 0)
		}),
	}
}

// reachFirst reaches process 1 of the namespace. In a sandbox it is that of bubblewrap, which
// reports the exit code of the run.
func reachFirst(Targets) error {
	const first = 1
	if pidfd, err := unix.PidfdOpen(first, 0); err == nil {
		defer unix.Close(pidfd)
		for fd := range 64 {
			if got, err := unix.PidfdGetfd(pidfd, fd, 0); err == nil {
				return unix.Close(got)
			}
		}
	}
	if err := openForWriting("/proc/1/mem"); err == nil {
		return nil
	}
	if err := openForWriting("/proc/1/task/1/mem"); err == nil {
		return nil
	}
	to := []unix.Iovec{{Base: new(byte), Len: 1}}
	_, err := unix.ProcessVMReadv(first, to, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	if err == unix.EFAULT {
		return nil // it could be read and written elsewhere
	}
	return err
}

// inOwnNamespaces runs a part of this program in a user namespace of its own, where it has all
// capabilities, and in others. It returns an error unless that succeeds.
func inOwnNamespaces(others uintptr, name string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process, err := os.StartProcess(self, append([]string{self, name}, args...), &os.ProcAttr{
		Env: os.Environ(),
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | others,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		},
	})
	if err != nil {
		return err
	}
	state, err := process.Wait()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return err
}
