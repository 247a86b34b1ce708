package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"mailboxd/dispatch"
	"mailboxd/internal/running/runner"
)

// A peer is the process at the other end of a connection, as the kernel names
// it: who connected, even if another process has the connection by now.
type peer struct {
	pid, uid int
	process  *os.File // a pidfd: it keeps the number from meaning another process; nil when it is gone
	ofGroup  bool     // it is connected to the approvers' socket
}

// peerOf asks the kernel who connected.
func peerOf(conn *net.UnixConn) (p peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	denied := raw.Control(func(fd uintptr) {
		var who *unix.Ucred
		if who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		p.pid, p.uid = int(who.Pid), int(who.Uid)
		pidfd, failed := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		if errors.Is(failed, unix.ENOPROTOOPT) { // before Linux 6.5: the number may have been given anew in between
			pidfd, failed = unix.PidfdOpen(p.pid, 0)
		}
		if failed == nil {
			p.process = os.NewFile(uintptr(pidfd), "pidfd")
		}
	})
	return p, errors.Join(denied, err)
}

// alive reports whether the process runs.
func (p peer) alive() bool {
	if p.process == nil {
		return false
	}
	raw, err := p.process.SyscallConn()
	if err != nil {
		return false
	}
	ended := true
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, failed := unix.Poll(poll, 0)
		for failed == unix.EINTR { // a signal that Go sends to its own threads
			n, failed = unix.Poll(poll, 0)
		}
		ended = failed != nil || n > 0 // readable: it has ended
	})
	return err == nil && !ended
}

// claimer returns the peer as a claimer of tasks, with a name.
func (p peer) claimer(name string) dispatch.Claimer {
	process := runner.ProcessOf(p.pid)
	if !p.alive() { // after looking: the number may be another process's by now
		return dispatch.Claimer{}
	}
	return dispatch.Claimer{Name: name, Process: process}
}

// name returns the name of the user, for records.
func (p peer) name() string {
	if u, err := user.LookupId(strconv.Itoa(p.uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("user %d", p.uid)
}

// verb is the first argument of a mailboxd that is recorded.
var verb = regexp.MustCompile(`^[a-z]{2,12}$`)

// String names the process and its program; of a mailboxd, also the command. No other argument is
// recorded: any may be a secret, such as the cookie of the page.
func (p peer) String() string {
	dir := "/proc/" + strconv.Itoa(p.pid)
	name, _ := os.ReadFile(dir + "/comm") // "" if it has ended
	program := strings.ToValidUTF8(string(bytes.TrimSuffix(name, []byte("\n"))), "?")
	if isMailboxd(dir) {
		line, _ := os.ReadFile(dir + "/cmdline")
		program = "mailboxd"
		if words := bytes.SplitN(line, []byte{0}, 3); len(words) > 1 && verb.Match(words[1]) {
			program += " " + string(words[1])
		}
	}
	return fmt.Sprintf("process %d (%s)", p.pid, program)
}

// isMailboxd reports whether a process runs the file of this program.
func isMailboxd(dir string) bool {
	theirs, err := os.Stat(dir + "/exe")
	if err != nil {
		return false
	}
	ours, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(theirs, ours)
}

type peerKey struct{}

// withPeer adds the peer of a connection to its requests.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*caller); ok {
		return context.WithValue(ctx, peerKey{}, c.peer)
	}
	return ctx
}

func peerIn(ctx context.Context) peer {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return peer{uid: -1} // nobody
	}
	return p
}

// A caller is a connection with its peer.
type caller struct {
	net.Conn
	peer    peer
	release func()
}

// Close closes the connection and the pidfd.
func (c *caller) Close() error {
	err := c.Conn.Close()
	if err == nil && c.peer.process != nil {
		err = c.peer.process.Close()
	}
	c.release()
	return err
}
