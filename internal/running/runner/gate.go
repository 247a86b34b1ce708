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

// RefusedFile is the file of a run directory with the hosts that the gate refused, a JSON
// object a line.
const RefusedFile = "network.jsonl"

// A gate is the process that connects one sandbox to listed hosts. Its end ends no run. A nil
// gate is none.
type gate struct {
	table    *processTable
	pid      int
	lifeline int // the gate ends when this is closed, also by the end of this process
}

// startGate starts a gate, and returns the socket for the listener of the sandbox.
func startGate(f *processTable, s Spec) (_ *gate, socket int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("start gate: %w", err)
	}
	defer unix.Close(pair[1])
	var life [2]int
	if err = unix.Pipe2(life[:], unix.O_CLOEXEC); err != nil {
		unix.Close(pair[0])
		return nil, -1, fmt.Errorf("start gate: %w", err)
	}
	defer unix.Close(life[0])
	pid, err := f.spawnHelper(func() (int, error) { return forkGate(s, pair[1], life[0]) })
	if err != nil {
		unix.Close(pair[0])
		unix.Close(life[1])
		return nil, -1, fmt.Errorf("start gate: %w", err)
	}
	return &gate{f, pid, life[1]}, pair[0], nil
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

// end ends the gate.
func (g *gate) end() {
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
