package runner

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openBroker starts the tool broker of a run, if it has one. Outside of a sandbox it passes the broker a
// listener, and the run its address. In a sandbox the listener comes from the first step there. A setup
// has no tools.
func (s *Spec) openBroker(f *processTable, b *box) (*helper, error) {
	if s.Broker == "" || s.step == inSetup || b != nil && b.weaker() {
		return nil, nil
	}
	config, err := memory("broker", strings.NewReader(s.Broker))
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	defer unix.Close(config)
	if b != nil {
		h, socket, err := startBeside(f, BrokerName, func(socket, life int) (int, error) { return forkBroker(config, socket, life) })
		if err == nil {
			b.broker = b.pass(socket)
		}
		return h, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	defer file.Close()
	h, err := startHelper(f, BrokerName, func(life int) (int, error) { return forkBroker(config, int(file.Fd()), life) })
	s.toolsURL = "http://" + l.Addr().String() + "/mcp"
	return h, err
}

// forkBroker starts the process of a broker. It has its own session, as a gate.
func forkBroker(config, socket, life int) (int, error) {
	none, err := open(os.DevNull, unix.O_RDWR)
	if err != nil {
		return 0, err
	}
	defer unix.Close(none)
	return startProcess("/proc/self/exe", []string{"mailboxd", BrokerName}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(),
		Files: []uintptr{uintptr(config), uintptr(none), uintptr(none), uintptr(socket), uintptr(life)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// brokerGrace is how long a broker may take to end its servers.
const brokerGrace = 5 * time.Second

// leave lets the helper end by itself, and kills it if it takes too long.
func (g *helper) leave() {
	if g == nil || g.lifeline < 0 {
		return
	}
	unix.Close(g.lifeline)
	g.lifeline = -1
	for end := time.Now().Add(brokerGrace); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, g.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || info.Signo != 0 {
			break
		}
	}
	g.table.endHelper(g.pid)
}
