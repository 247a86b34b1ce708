package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mailboxd/internal/access/client"
	"mailboxd/watcher"
)

// connects names, in the environment, the socket to which the test binary
// connects the descriptor that it inherits, instead of testing.
const connects = "API_TEST_CONNECTS"

func TestMain(m *testing.M) {
	if name := os.Getenv(connects); name != "" {
		if err := unix.Connect(3, &unix.SockaddrUnix{Name: name}); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func TestTheSocketIsOurUsersAlone(t *testing.T) {
	h := open(t, stranger)
	info, err := os.Stat(h.location.String())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v; want mode 0600", info.Mode(), err)
	}
	if info, err = os.Stat(h.location.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is %v, %v; want mode 0700", info.Mode(), err)
	}
	if err := os.Chmod(h.location.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err := h.location.Listen(t.Context()); err == nil {
		l.Close()
		t.Error("Listen in a directory that others may look into; want an error")
	}
}

func TestADirectoryMayHaveALongName(t *testing.T) {
	h := openAt(t, filepath.Join(t.TempDir(), strings.Repeat("x", 200)), stranger)
	if s, err := h.Status(t.Context()); err != nil || s.PID != os.Getpid() || s.Version != "test" {
		t.Errorf("Status = %+v, %v; want ours", s, err)
	}
}

func TestTheSocketOfAKilledDaemonIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	location := client.SocketPath{Dir: dir, Name: "x.sock"}
	l, err := location.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // what is left is a name that nobody listens to
	if _, err := client.Open(t.Context(), location); !errors.Is(err, client.ErrDown) {
		t.Errorf("Open = %v; want %v", err, client.ErrDown)
	}
	openAt(t, dir, stranger)
}

func TestWithoutADaemonItIsSaidSo(t *testing.T) {
	h := open(t, stranger)
	h.stop()
	if _, err := h.Status(t.Context()); !errors.Is(err, client.ErrDown) {
		t.Errorf("Status = %v; want %v", err, client.ErrDown)
	}
}

func TestASocketThatIsTakenAwayIsPutBack(t *testing.T) {
	h := open(t, stranger)
	if err := os.RemoveAll(h.location.Dir); err != nil {
		t.Fatal(err)
	}
	h.Client.Close() // the next request needs a connection of its own
	ctx, met := context.WithTimeout(t.Context(), 2*time.Minute)
	defer met()
	err := watcher.Watch(ctx, []string{filepath.Dir(h.location.Dir)}, 20*time.Millisecond, func() {
		if conn, err := h.location.Dial(ctx); err == nil {
			conn.Close()
			met()
		}
	})
	if s, asked := h.Status(t.Context()); err != nil || asked != nil || s.Version != "test" {
		t.Errorf("Watch = %v; Status = %+v, %v; want ours", err, s, asked)
	}
}

func TestADoorShutsThoughSomebodyHangsOnIt(t *testing.T) {
	h := open(t, stranger)
	conn, err := h.location.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST /v1/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	following := make(chan error, 1)
	followed := make(chan struct{})
	h.remember(t, "t1")
	done := startAll(func() {
		following <- h.Follow(t.Context(), "", 0, func(client.Event) error { close(followed); return nil })
	})
	<-followed
	h.stop()
	done.Wait()
	if err := <-following; !errors.Is(err, client.ErrDown) {
		t.Errorf("Follow = %v; want %v", err, client.ErrDown)
	}
}

func TestAnotherUserIsSentAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	h := open(t, stranger)
	for dir := h.location.Dir; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o005 == 0 {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(h.location.String(), 0o666); err != nil {
		t.Fatal(err)
	}
	nobody := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (conn net.Conn, err error) {
		return dialAs(t, h.location.String(), 65534)
	}}}
	response, err := nobody.Get("http://x/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.CloseIdleConnections()
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("nobody gets %s; want 403", response.Status)
	}
}

// dialAs connects as another user: the kernel asks the thread who it is.
func dialAs(t *testing.T, path string, uid uintptr) (net.Conn, error) {
	t.Helper()
	const same = ^uintptr(0)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, uid, same); e != 0 {
		return nil, e
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same); e != 0 {
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("connect as %d: %w", uid, err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	return net.FileConn(f)
}
