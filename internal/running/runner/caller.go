package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// checkCaller says why a client may not give requests; "" if it may. Only the daemon may: a
// process of the same user that isn't part of a run and serves the mailbox. A client that
// only counts keepers sends no request.
func (k *keeper) checkCaller(l *connection) (why string, err error) {
	who, err := credentials(l.conn)
	if err != nil {
		return "", err
	}
	pid := int(who.Pid)
	chain, err := ancestry(pid)
	switch {
	case int(who.Uid) != os.Geteuid():
		return fmt.Sprintf("user %d is another user", who.Uid), nil
	case err != nil:
		return "", fmt.Errorf("inspect process %d: %w", pid, err)
	case slices.ContainsFunc(chain, func(e entry) bool { return e.PID == os.Getpid() }):
		return fmt.Sprintf("process %d is part of a run", pid), nil
	case k.isDaemon != nil && !k.isDaemon(pid):
		return fmt.Sprintf("process %d does not serve the mailbox", pid), nil
	}
	return "", nil
}

// authorize reports whether a client may give requests. It logs a refusal.
func (k *keeper) authorize(l *connection) bool {
	why, err := k.checkCaller(l)
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), "order refused:", why)
	}
	return why == ""
}

// credentials returns the kernel's credentials of the peer.
func credentials(conn net.Conn) (who *unix.Ucred, err error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("the client is not on a socket of this machine")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return who, errors.Join(failed, err)
}
