package access

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A socket is one end of a TCP connection, as the kernel lists it.
type socket struct {
	inode string
	uid   int
}

// ErrNoOwner says that no process of the user has the socket of a connection open.
var ErrNoOwner = errors.New("no process of this user was found that owns the connection")

// ownersOf returns the processes that have the other end of a connection open: local is the
// address of that end. A process whose descriptors can't be read is not among them.
func ownersOf(local, remote netip.AddrPort) (pids []int, err error) {
	s, err := findSocket(local, remote)
	if err != nil {
		return nil, err
	}
	if s.uid != os.Geteuid() {
		return nil, fmt.Errorf("the connection is of another user, uid %d", s.uid)
	}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range names {
		if !hasOpen(dir, s.inode) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		return nil, ErrNoOwner
	}
	return pids, nil
}

// hasOpen reports whether a thread of a process has a socket open. A thread may have descriptors
// of its own; the others have those of the process, which are read once.
func hasOpen(dir, inode string) bool {
	threads, err := os.ReadDir(filepath.Join(dir, "task"))
	process := filepath.Base(dir)
	return err == nil && (threadHasOpen(dir, inode) || slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
		return !shareDescriptors(process, thread.Name()) && threadHasOpen(filepath.Join(dir, "task", thread.Name()), inode)
	}))
}

// shareDescriptors reports whether a thread surely has the descriptors of the first thread of its process (kcmp(2)).
func shareDescriptors(process, thread string) bool {
	const files = 2 // KCMP_FILES
	pid, errPid := strconv.Atoi(process)
	tid, errTid := strconv.Atoi(thread)
	if errPid != nil || errTid != nil {
		return false
	}
	order, _, failed := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(tid), files, 0, 0, 0)
	return failed == 0 && order == 0
}

// threadHasOpen reports whether a thread has a socket open.
func threadHasOpen(dir, inode string) bool {
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return false
	}
	want := "socket:[" + inode + "]"
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
		return err == nil && target == want
	})
}

// findSocket looks up the socket of a connection in the tables of the kernel (proc(5)).
func findSocket(local, remote netip.AddrPort) (socket, error) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return socket{}, fmt.Errorf("look up the owner of a connection: %w", err)
		}
		s, found := scanTable(file, local, remote)
		_ = file.Close()
		if found {
			return s, nil
		}
	}
	return socket{}, ErrNoOwner
}

// scanTable finds a connection in one table.
func scanTable(table io.Reader, local, remote netip.AddrPort) (socket, bool) {
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		from, ok := parseAddress(fields[1])
		to, okTo := parseAddress(fields[2])
		if !ok || !okTo || from != local || to != remote {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		if err != nil || fields[9] == "0" { // 0: the process has closed it
			return socket{}, false
		}
		return socket{fields[9], uid}, true
	}
	return socket{}, false
}

// parseAddress reads an address as the tables have it: words of 32 bits in the order of the
// machine, here that of x86 and ARM.
func parseAddress(text string) (netip.AddrPort, bool) {
	host, port, found := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if !found || err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok && err == nil
}
