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

// refuses says why a client may give no orders, or "". Only the daemon may: it is
// the same user's, it is no process of a run, and it serves the mailbox. Whoever
// only counts keepers gives none.
func (k *keeper) refuses(l *line) (why string, err error) {
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
	case k.serves != nil && !k.serves(pid):
		return fmt.Sprintf("process %d does not serve the mailbox", pid), nil
	}
	return "", nil
}

// obeys reports whether a client may give orders. One that may not is logged.
func (k *keeper) obeys(l *line) bool {
	why, err := k.refuses(l)
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), "order refused:", why)
	}
	return why == ""
}

// credentials asks the kernel who connected.
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
