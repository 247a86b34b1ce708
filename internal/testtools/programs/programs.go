// Package programs builds mailboxd for tests that start it, finds and kills processes, and starts programs as another user.
package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Build builds mailboxd, whose package is at a path, for tests that are called name. It unsets the variables of the
// person who runs them. The sockets of daemons are beside the program, until remove is called.
func Build(name, mailboxd string) (program string, remove func(), err error) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MAILBOXD_") || name == "AINL_AGENT_ROOT" {
			if err := os.Unsetenv(name); err != nil {
				return "", nil, err
			}
		}
	}
	dir, remove, err := Compile(name, mailboxd)
	if err != nil {
		return "", nil, err
	}
	if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
		remove()
		return "", nil, err
	}
	return filepath.Join(dir, "mailboxd"), remove, nil
}

// Faults have Compile build programs that may die at the points of fault.
const Faults = "-tags=faults"

// Compile builds the programs of some packages for tests that are called name, as arguments of go build say. The
// programs are in the directory until remove is called.
func Compile(name string, args ...string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", name); err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	build := exec.Command("go", append([]string{"build", "-o", dir + string(filepath.Separator)}, args...)...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build programs: %w", err)
	}
	return dir, remove, nil
}

// Processes returns the processes whose arguments and environment fit, but for this one. Each ends with a zero byte
// per entry; of other users, a process has no environment.
func Processes(fits func(command, environment string) bool) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		environment, _ := os.ReadFile(dir + "/environ") // of one that is gone there is none
		command, _ := os.ReadFile(dir + "/cmdline")
		if pid != os.Getpid() && len(command) > 0 && fits(string(command), string(environment)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// AsAnotherUser returns the program of the tests with arguments, to be run as another user. Its directory, in
// which that user can read files, is removed after the test. Without root, the test is skipped.
func AsAnotherUser(t testing.TB, args ...string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("another user can be played by root alone")
	}
	dir, err := os.MkdirTemp("/tmp", "another-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "program"), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	const another = 65534
	cmd = exec.Command(filepath.Join(dir, "program"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: another, Gid: another}}
	return cmd, dir
}

// Kill kills processes, and returns when they are gone.
func Kill(pids []int) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it is gone
		}
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // likewise
		ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for _, err = unix.Poll(ended, -1); errors.Is(err, unix.EINTR); {
			_, err = unix.Poll(ended, -1)
		}
		_ = unix.Close(fd)
	}
}
