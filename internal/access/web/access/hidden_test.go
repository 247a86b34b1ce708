package access

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roles are what the test binary does as another process, with the address that follows.
var roles = map[string]func(rest []string) error{"hidden": connect, "visible": connect, "look": look}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && roles[os.Args[1]] != nil {
		if err := play(os.Args[1], os.Args[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// nobody is a user without rights, in place of root, who sees every process.
const nobody = 65534

// play plays a role as a user without rights.
func play(role string, rest []string) error {
	if os.Geteuid() == 0 {
		if err := errors.Join(syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			return err
		}
	}
	dumpable := uintptr(1)
	if role == "hidden" {
		dumpable = 0
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, dumpable, 0, 0, 0); err != nil {
		return err
	}
	return roles[role](rest)
}

// connect connects to an address until standard input ends.
func connect(rest []string) error {
	conn, err := net.Dial("tcp", rest[0])
	if err != nil {
		return err
	}
	fmt.Println("connected")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, conn.Close())
}

// look prints the owners of a connection.
func look(rest []string) error {
	pids, err := ownersOf(netip.MustParseAddrPort(rest[0]), netip.MustParseAddrPort(rest[1]))
	if err == nil {
		fmt.Println(pids)
	}
	return err
}

func TestAProcessThatHidesItsDescriptorsOwnsNothing(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, role := range []string{"visible", "hidden"} {
		cmd := exec.Command(os.Args[0], role, l.Addr().String())
		in, errIn := cmd.StdinPipe()
		out, errOut := cmd.StdoutPipe()
		if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if said, err := bufio.NewReader(out).ReadString('\n'); said != "connected\n" {
			t.Fatalf("%s: %q, %v", role, said, err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		found, err := exec.Command(os.Args[0], "look", conn.RemoteAddr().String(), conn.LocalAddr().String()).CombinedOutput()
		text := strings.TrimSpace(string(found))
		if role == "visible" && (err != nil || !slices.Contains(strings.Fields(strings.Trim(text, "[]")), fmt.Sprint(cmd.Process.Pid))) {
			t.Errorf("owners of a process that can be seen: %s, %v; want %d", text, err, cmd.Process.Pid)
		}
		if role == "hidden" && (err == nil || text != ErrNoOwner.Error()) {
			t.Errorf("owners of a process that hides: %s, %v; want %q", text, err, ErrNoOwner)
		}
		if err := errors.Join(conn.Close(), in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}
