package sandbox_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/sandboxing/sandbox"
)

// verdict runs a filter on a system call as the kernel does, and returns its errno; 0 if the call is
// allowed.
func verdict(t *testing.T, filter []byte, number uint64, args ...uint64) unix.Errno {
	t.Helper()
	call := make([]byte, 64)
	binary.LittleEndian.PutUint32(call, uint32(number))
	binary.LittleEndian.PutUint32(call[4:], map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH])
	for i, arg := range args {
		binary.LittleEndian.PutUint64(call[16+8*i:], arg)
	}
	loaded := uint32(0)
	for at := 0; at < len(filter)/8; at++ {
		code := binary.LittleEndian.Uint16(filter[8*at:])
		jt, jf, k := int(filter[8*at+2]), int(filter[8*at+3]), binary.LittleEndian.Uint32(filter[8*at+4:])
		jump := func(holds bool) {
			if holds {
				at += jt
			} else {
				at += jf
			}
		}
		switch code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			loaded = binary.LittleEndian.Uint32(call[k:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			loaded &= k
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(loaded == k)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(loaded&k != 0)
		case unix.BPF_RET | unix.BPF_K:
			return unix.Errno(k & 0xffff)
		default:
			t.Fatalf("instruction %d has the code %#x, which this test doesn't know", at, code)
		}
	}
	t.Fatal("the filter has no verdict")
	return 0
}

func TestAFilterRefusesTheCallsThatReachAroundASandbox(t *testing.T) {
	const pointer = 0x7f00_0000_0000 // whose lower half is 0
	for _, c := range []struct {
		name   string
		number uint64
		args   []uint64
		strong unix.Errno // of Filter
		weaker unix.Errno // of WeakerFilter
	}{
		{"read", unix.SYS_READ, nil, 0, 0},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, unix.ENOSYS, unix.ENOSYS},
		{"keyctl", unix.SYS_KEYCTL, nil, unix.EPERM, unix.EPERM},
		{"a socket of Unix", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, 0, unix.EPERM},
		{"a socket of netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, 0, unix.EPERM},
		{"a socket of vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT, unix.EPERM},
		{"a pair of streams", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, 0, 0},
		{"a pair of datagram sockets", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, 0, unix.EPERM},
		{"ptrace", unix.SYS_PTRACE, nil, 0, unix.EPERM},
		{"setrlimit of files", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_NOFILE, pointer}, 0, 0},
		{"setrlimit of the mark", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_RTTIME, pointer}, unix.EPERM, unix.EPERM},
		{"prlimit of files", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, pointer}, 0, 0},
		{"prlimit that reads the mark", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME, 0, pointer}, 0, 0},
		{"prlimit that sets the mark", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME, pointer}, unix.EPERM, unix.EPERM},
		{"prlimit that sets the mark, low", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME, 64}, unix.EPERM, unix.EPERM},
		{"prlimit of another process", unix.SYS_PRLIMIT64, []uint64{42, unix.RLIMIT_NOFILE, pointer}, 0, unix.EPERM},
	} {
		for kind, want := range map[string]unix.Errno{"Filter": c.strong, "WeakerFilter": c.weaker} {
			build := map[string]func(bool) ([]byte, error){"Filter": sandbox.Filter, "WeakerFilter": sandbox.WeakerFilter}[kind]
			filter, err := build(false)
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(t, filter, c.number, c.args...); got != want {
				t.Errorf("%s: %s is answered with %d (%v); want %d", kind, c.name, got, got, want)
			}
		}
	}
}
