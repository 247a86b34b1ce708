package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"mailboxd/internal/sandboxing/sandbox"
)

// The descriptors of the process of a gate, besides its output, which gets the refusals.
const (
	socket   = 3 // the listener of the sandbox comes from there
	lifeline = 4 // ends with the keeper
)

// Run is the process of a gate. It gets the listener of its sandbox, and serves it until its
// keeper ends it, or is gone.
func Run(args []string) error {
	unix.CloseOnExec(socket)
	unix.CloseOnExec(lifeline)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := Receive(socket)
	if err != nil {
		return err
	}
	end := os.NewFile(lifeline, "lifeline")
	var watching sync.WaitGroup
	watching.Go(func() {
		_, _ = io.Copy(io.Discard, end) // ends with the keeper
		stop()
	})
	g := &Gate{Refused: os.Stdout}
	g.Hosts, g.Unneeded = sandbox.GateHosts(args)
	return g.Serve(ctx, l) // the process ends, and the wait for the keeper with it
}

// Receive receives a listener.
func Receive(fd int) (net.Listener, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive listener: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("receive listener: the sandbox ended before it sent one")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.New("receive listener: it is not one descriptor")
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}

// Enter is the first step in a sandbox with a network list or with tools. It listens on the loopback
// device of the sandbox, hands the listeners to the gate and to the tool broker, and becomes the agent,
// which finds the gate by the usual variables of proxies. The first argument is the socket of the gate, a
// comma, and that of the broker; either may be empty.
func Enter(args []string) error {
	if len(args) < 2 {
		return errors.New("enter sandbox: the arguments lack a socket or a command")
	}
	argv, env := args[1:], os.Environ()
	proxy, tools, _ := strings.Cut(args[0], ",")
	if proxy != "" {
		address, err := handOver(proxy)
		if err != nil {
			return err
		}
		env = environment(env, "http://"+address)
	}
	if tools != "" {
		address, err := handOver(tools)
		if err != nil {
			return err
		}
		argv, env = sandbox.AddTools(argv, env, "http://"+address+"/mcp")
	}
	if err := unix.CloseRange(3, 1<<20, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	err := syscall.Exec(argv[0], argv, env)
	return fmt.Errorf("start %s: %w", argv[0], err)
}

// handOver listens in the sandbox, and hands the listener to the process at the other end of a socket.
func handOver(number string) (address string, err error) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return "", fmt.Errorf("enter sandbox: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen in sandbox: %w", err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return "", fmt.Errorf("listen in sandbox: %w", err)
	}
	err = unix.Sendmsg(fd, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) { // it is gone: no network, or no tools
		return "", fmt.Errorf("hand listener over: %w", err)
	}
	return l.Addr().String(), nil
}

// environment adds the variables of proxies. What runs in the sandbox itself is reached
// directly.
func environment(env []string, proxy string) []string {
	const direct = "localhost,127.0.0.1,::1"
	for name, value := range map[string]string{
		"HTTPS_PROXY": proxy, "https_proxy": proxy, "HTTP_PROXY": proxy, "http_proxy": proxy, "ALL_PROXY": proxy, "all_proxy": proxy,
		"NO_PROXY": direct, "no_proxy": direct, "NODE_USE_ENV_PROXY": "1",
	} {
		kept := env[:0:0]
		for _, entry := range env {
			if !strings.HasPrefix(entry, name+"=") {
				kept = append(kept, entry)
			}
		}
		env = append(kept, name+"="+value)
	}
	return env
}
