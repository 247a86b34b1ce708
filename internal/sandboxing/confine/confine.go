// Package confine is the weaker sandbox, for machines where bubblewrap makes none: it restricts
// this process with Landlock and a seccomp filter, and becomes the agent.
package confine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"mailboxd/internal/sandboxing/sandbox"
)

// Become restricts this process as the options of sandbox.Settings.WeakerOptions say, and
// becomes the command behind them. It returns only after an error; nothing of the agent ran
// then.
func Become(args []string) error {
	p, err := parse(args)
	if err != nil {
		return fmt.Errorf("make weaker sandbox: %w", err)
	}
	runtime.LockOSThread() // the restrictions are those of a thread, which becomes the agent
	if err := p.restrict(); err != nil {
		return fmt.Errorf("make weaker sandbox: %w", err)
	}
	if _, err := unix.Write(p.status, []byte(sandbox.Confined)); err != nil {
		return fmt.Errorf("write status of weaker sandbox: %w", err)
	}
	err = syscall.Exec(p.argv[0], p.argv, os.Environ())
	if wrong := unix.Ftruncate(p.status, 0); wrong != nil {
		err = errors.Join(err, wrong)
	}
	return fmt.Errorf("start %s: %w", p.argv[0], err)
}

// A plan is what the options say.
type plan struct {
	read, devices, masked []string
	binds                 []bind
	tmp, cwd              string
	filter, status        int
	argv                  []string
}

// A bind is an open path.
type bind struct {
	fd       int
	path     string
	writable bool
}

func parse(args []string) (p plan, err error) {
	p.filter, p.status = -1, -1
	for len(args) >= 2 {
		name, value := args[0], args[1]
		if name == "--" {
			p.argv = args[1:]
			break
		}
		args = args[2:]
		switch name {
		case sandbox.ReadOption:
			p.read = append(p.read, value)
		case sandbox.DeviceOption:
			p.devices = append(p.devices, value)
		case sandbox.MaskOption:
			p.masked = append(p.masked, value)
		case sandbox.TempOption:
			p.tmp = value
		case sandbox.ChdirOption:
			p.cwd = value
		case sandbox.FilterOption:
			p.filter, err = strconv.Atoi(value)
		case sandbox.StatusOption:
			p.status, err = strconv.Atoi(value)
		case sandbox.BindOption, sandbox.ROBindOption:
			var fd int
			if fd, err = strconv.Atoi(value); err == nil && len(args) == 0 {
				err = errors.New("no path")
			}
			if err == nil {
				p.binds, args = append(p.binds, bind{fd, args[0], name == sandbox.BindOption}), args[1:]
			}
		default:
			err = errors.New("unknown option")
		}
		if err != nil {
			return p, fmt.Errorf("option %s %s: %w", name, value, err)
		}
	}
	if len(p.argv) == 0 || p.filter < 0 || p.status < 0 || p.cwd == "" {
		return p, errors.New("the options lack a command, a filter, a status file or a working directory")
	}
	return p, nil
}

// restrict restricts this thread. The order matters: each step still needs what a later one
// takes away.
func (p plan) restrict() error {
	if err := p.changeDir(); err != nil {
		return err
	}
	if err := os.Setenv("TMPDIR", p.tmp); err != nil {
		return err
	}
	code, err := io.ReadAll(os.NewFile(uintptr(p.filter), "filter"))
	if err != nil {
		return fmt.Errorf("read filter: %w", err)
	}
	rules, err := newRuleset()
	if err != nil {
		return err
	}
	if err := p.allow(rules); err != nil {
		return err
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := rules.enforce(); err != nil {
		return err
	}
	return install(code)
}

// changeDir changes to the open working directory, so that no link made since can redirect it.
func (p plan) changeDir() error {
	for _, b := range p.binds {
		if b.path == p.cwd {
			return os.NewSyscallError("fchdir", unix.Fchdir(b.fd))
		}
	}
	return os.Chdir(p.cwd)
}

// dropCapabilities gives up all capabilities, also those that root would get back.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl PR_SET_NO_NEW_PRIVS", err)
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// An ordinary user may not, and needs not. An old kernel doesn't know all.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && err != unix.EINVAL && (err != unix.EPERM || os.Getuid() == 0) {
			return os.NewSyscallError("prctl PR_CAPBSET_DROP", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// install installs a seccomp filter.
func install(code []byte) error {
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	if len(code) == 0 || len(code)%size != 0 || len(code)/size > math.MaxUint16 {
		return errors.New("install filter: it is no program")
	}
	program := unix.SockFprog{Len: uint16(len(code) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(code)
	return os.NewSyscallError("prctl PR_SET_SECCOMP", err)
}
