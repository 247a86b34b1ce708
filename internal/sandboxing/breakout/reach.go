package breakout

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const patience = 10 * time.Second // for an answer of a socket; a sandbox refuses at once

func connectPath(t Targets) error {
	return each(t.Sockets, func(path string) error { return connect("unix", path) })
}

func connectAbstract(t Targets) error { return connect("unix", "@"+t.Abstract) }

func connectTCP(t Targets) error { return connect("tcp", t.TCP) }

func connect(network, address string) error {
	c, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return err
	}
	return c.Close()
}

// sendUDP sends a packet and waits for the answer, since a packet to nobody is sent too.
func sendUDP(t Targets) error {
	c, err := net.DialTimeout("udp", t.UDP, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("breakout")); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err = c.Read(make([]byte, 1))
	return err
}

// found returns an error unless the target is the process with its number here.
func (t Targets) found() error {
	stat, err := os.ReadFile(t.proc("stat"))
	if err != nil {
		return err
	}
	if StartOf(stat) != t.Start {
		return errors.New("another process has the number")
	}
	return nil
}

// StartOf returns the start time in the content of /proc/PID/stat.
func StartOf(stat []byte) string {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const start = 19 // behind the name
	if len(fields) <= start {
		return ""
	}
	return string(fields[start])
}

func (t Targets) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(t.PID)) + "/" + name
}

// reach makes an attempt on the target process, if it is visible.
func (t Targets) reach(try func() error) error {
	if err := t.found(); err != nil {
		return err
	}
	return try()
}

func signalProcess(t Targets) error {
	return t.reach(func() error { return unix.Kill(t.PID, unix.SIGCONT) })
}

func traceProcess(t Targets) error {
	return t.reach(func() error {
		runtime.LockOSThread() // of the tracer
		defer runtime.UnlockOSThread()
		if err := unix.PtraceSeize(t.PID); err != nil {
			return err
		}
		return unix.PtraceInterrupt(t.PID)
	})
}

func reachProc(name string, flags int) func(Targets) error {
	return func(t Targets) error {
		return t.reach(func() error {
			f, err := os.OpenFile(t.proc(name), flags, 0)
			if err != nil {
				return err
			}
			return f.Close()
		})
	}
}

func limitProcess(t Targets) error {
	return t.reach(func() error {
		var now unix.Rlimit
		return unix.Prlimit(t.PID, unix.RLIMIT_CORE, nil, &now)
	})
}

func listProcesses(t Targets) error { return t.found() }

func openShm(t Targets) error {
	_, err := unix.SysvShmGet(t.Shm, 0, 0)
	return err
}

func openDevShm(t Targets) error {
	for _, path := range t.Writable {
		if strings.HasPrefix(path, "/dev/shm/") {
			return writeFile(Targets{Writable: []string{path}})
		}
	}
	return errAbsent
}

func touchFile(t Targets) error {
	return each(t.Readable, func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) })
}

func openVsock(Targets) error {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func setUpRing(Targets) error {
	var params [120]byte // struct io_uring_params
	fd, _, number := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	if number != 0 {
		return number
	}
	return unix.Close(int(fd))
}

func useKeyring(Targets) error {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	return err
}

// writeStdin opens the standard input again, as a path.
func writeStdin(Targets) error {
	f, err := os.OpenFile("/proc/self/fd/0", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errAbsent // such as /dev/null
	}
	_, err = f.Write([]byte("x"))
	return err
}

// writeInherited opens again every descriptor that this process has from its parent, except
// its output.
func writeInherited(Targets) error {
	failed := errors.New("there is none")
	for fd := 3; fd < 1024; fd++ {
		var flags int
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // one of this program
		}
		path := fmt.Sprintf("/proc/self/fd/%d", fd)
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return f.Close()
		}
		failed = err
	}
	return failed
}

// readThroughInherited reads a secret from a directory that this process, or the first one of the
// sandbox, has open: above it may be the files outside.
func readThroughInherited(t Targets) error {
	const above = "/../../../../../../../../../../../../../../../.."
	failed := errAbsent
	for _, dir := range []string{"/proc/self/fd", "/proc/1/fd"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			failed = err
			continue
		}
		for _, e := range entries {
			err := each(t.Readable, func(path string) error {
				_, err := os.ReadFile(filepath.Join(dir, e.Name()) + above + path)
				return err
			})
			if err == nil {
				return nil
			}
			failed = err
		}
	}
	return failed
}

// shedMark changes the limit that marks the processes of a run.
func shedMark(Targets) error {
	return changeLimit(func(l *unix.Rlimit) error { return unix.Prlimit(0, unix.RLIMIT_RTTIME, l, nil) })
}

func shedMarkOld(Targets) error {
	return changeLimit(func(l *unix.Rlimit) error {
		_, _, number := unix.RawSyscall(unix.SYS_SETRLIMIT, unix.RLIMIT_RTTIME, uintptr(unsafe.Pointer(l)), 0)
		if number != 0 {
			return number
		}
		return nil
	})
}

// changeLimit lowers the soft limit, and restores it.
func changeLimit(set func(*unix.Rlimit) error) error {
	var before unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &before); err != nil {
		return err
	}
	lower := before
	lower.Cur = 1 << 40
	if err := set(&lower); err != nil {
		return err
	}
	return set(&before)
}

// RemountName is the argument that makes this program try a remount in namespaces of its own.
const RemountName = "breakout-remount"

// remount makes namespaces of its own, where this process has all capabilities, and makes the
// directory of a target writable there.
func remount(t Targets) error {
	if len(t.Dirs) == 0 {
		return errAbsent
	}
	return inOwnNamespaces(unix.CLONE_NEWNS, RemountName, t.Dirs...)
}

// Remount is the process of the attempt with a remount. Its arguments are the directories.
func Remount(dirs []string) error {
	return each(dirs, func(dir string) error {
		const flags = unix.MS_REMOUNT | unix.MS_BIND
		for at := dir; at != "/"; at = filepath.Dir(at) {
			if unix.Mount("none", at, "", flags, "") == nil {
				break
			}
		}
		return makeFile(Targets{Dirs: []string{dir}})
	})
}
