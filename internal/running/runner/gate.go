package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// The arguments that make this program a gate, and the first step in a sandbox. No command of
// the command line has these names.
const (
	GateName  = "gate"
	EnterName = "enter"
)

// BrokerName is the argument that makes this program a tool broker.
const BrokerName = "broker"

// Descriptors of a broker, besides its configuration as standard input.
const (
	BrokerSocket   = 3 // the listener, or where it comes from
	BrokerLifeline = 4 // ends with the keeper
)

// RefusedFile is the file of a run directory with the hosts that the gate refused, a JSON
// object a line.
const RefusedFile = "network.jsonl"

// A helper is a process beside a run: the gate, which connects one sandbox to listed hosts, or the tool
// broker. Its end ends no run. A nil helper is none.
type helper struct {
	table    *processTable
	pid      int
	lifeline int // the helper ends when this is closed, also by the end of this process
}

// startHelper starts a helper with the end of its lifeline.
func startHelper(f *processTable, name string, fork func(life int) (int, error)) (*helper, error) {
	var life [2]int
	if err := unix.Pipe2(life[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer unix.Close(life[0])
	pid, err := f.spawnHelper(func() (int, error) { return fork(life[0]) })
	if err != nil {
		unix.Close(life[1])
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &helper{f, pid, life[1]}, nil
}

// startBeside starts a helper that gets a listener out of the sandbox, and returns the socket for it.
func startBeside(f *processTable, name string, fork func(socket, life int) (int, error)) (_ *helper, socket int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("start %s: %w", name, err)
	}
	defer unix.Close(pair[1])
	h, err := startHelper(f, name, func(life int) (int, error) { return fork(pair[1], life) })
	if err != nil {
		unix.Close(pair[0])
		return nil, -1, err
	}
	return h, pair[0], nil
}

func forkGate(s Spec, socket, life int) (int, error) {
	none, err := open(os.DevNull, unix.O_RDWR)
	if err != nil {
		return 0, err
	}
	defer unix.Close(none)
	once := unix.O_EXCL
	if s.step == afterSetup {
		once = unix.O_NOFOLLOW // the gate of the setup may have made it
	}
	refused, err := open(inDir(s.Dir, RefusedFile), unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|once)
	if err != nil {
		return 0, err
	}
	defer unix.Close(refused)
	return startProcess("/proc/self/exe", slices.Concat([]string{"mailboxd", GateName}, s.Sandbox.Network), &syscall.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []uintptr{uintptr(none), uintptr(refused), uintptr(none), uintptr(socket), uintptr(life)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// end ends the helper at once.
func (g *helper) end() {
	if g == nil {
		return
	}
	unix.Close(g.lifeline)
	g.table.endHelper(g.pid)
}

// maxRefused is how many bytes of a list of refused hosts are read.
const maxRefused = 64 << 10

// RefusedHosts returns the hosts that the gate of a run refused; none without a gate.
func RefusedHosts(dir string) (all []task.RefusedHost) {
	if dir == "" {
		return nil
	}
	fd, err := open(inDir(dir, RefusedFile), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	text, _ := readAll(fd, maxRefused) // a part is better than nothing
	for line := range bytes.Lines(text) {
		var host task.RefusedHost
		if json.Unmarshal(line, &host) == nil && host.Host != "" {
			all = append(all, host)
		}
	}
	return all
}
