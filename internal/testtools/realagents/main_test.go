package realagents_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/slowtest"
	"mailboxd/internal/testtools/toolcaller"
)

// daemonVariable has the path of mailboxd in the process that runs the tests.
const daemonVariable = "REALAGENTS_MAILBOXD"

// toolCaller is the argument that makes this program an agent that uses its tools.
const toolCaller = "toolcaller"

// noPrograms is why the tests of programs are skipped; "" if they run.
var noPrograms string

// TestMain runs the tests in a network without any device but loopback, so that no program
// can reach the real one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == toolCaller {
		if err := toolcaller.Main(os.Args[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(daemonVariable) != "" {
		if err := raiseLoopback(); err != nil {
			fmt.Fprintln(os.Stderr, "raise the loopback device:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	slowtest.RunAtOnce(2)
	if noPrograms = whyNot(); noPrograms != "" {
		os.Exit(m.Run())
	}
	os.Exit(inOwnNetwork(m))
}

func whyNot() string {
	if !slowtest.Enabled() {
		return "the agent programs take seconds to start; " + slowtest.Variable + "=1 runs them"
	}
	if _, err := os.Stat(filepath.Join(programs(), "installed")); err != nil {
		return "the agent programs are not installed; .ci/agents installs them in " + programs()
	}
	return ""
}

// programs returns the directory of .ci/agents.
func programs() string {
	if dir := os.Getenv("MAILBOXD_AGENTS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(os.TempDir(), ".cache")
	}
	return filepath.Join(cache, "mailboxd-agents")
}

// inOwnNetwork builds mailboxd, and runs this test binary again in a new network namespace.
func inOwnNetwork(m *testing.M) int {
	dir, err := os.MkdirTemp("", "realagents-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	daemon := filepath.Join(dir, "mailboxd")
	build := exec.Command("go", "build", "-o", daemon, "../../../cmd/mailboxd")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), daemonVariable+"="+daemon)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if id := os.Getuid(); id != 0 {
		again.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		again.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	err = again.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return exited.ExitCode()
	}
	if err != nil {
		noPrograms = "a network of its own can't be made: " + err.Error()
		return m.Run()
	}
	return 0
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

func TestNoRealNetworkCanBeReached(t *testing.T) {
	needPrograms(t)
	interfaces, err := os.ReadDir("/proc/self/net/dev_snmp6")
	if err != nil {
		t.Skip(err)
	}
	for _, device := range interfaces {
		if device.Name() != "lo" {
			t.Errorf("the tests have the network device %s; want only lo", device.Name())
		}
	}
}

func needPrograms(t testing.TB) {
	t.Helper()
	if noPrograms != "" {
		t.Skip(noPrograms)
	}
}
