package sandbox

import (
	"encoding/binary"
	"errors"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// The layout of struct seccomp_data (seccomp(2)).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// The return values of a filter (seccomp(2)).
const (
	retAllow = 0x7fff0000
	retErrno = 0x00050000 // with the number in the low bits
)

// x32 marks system calls of another ABI on x86-64.
const x32 = 0x40000000

// architectures are the values of AUDIT_ARCH_* of what is tested.
var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64,
	"arm64": unix.AUDIT_ARCH_AARCH64,
}

// refused are system calls without a use in an agent that reach around namespaces or had
// many bugs. The error of io_uring makes programs fall back to ordinary calls: it would open
// sockets without this filter.
var refused = map[uint32]unix.Errno{
	unix.SYS_IO_URING_SETUP:    unix.ENOSYS,
	unix.SYS_IO_URING_ENTER:    unix.ENOSYS,
	unix.SYS_IO_URING_REGISTER: unix.ENOSYS,
	unix.SYS_KEYCTL:            unix.EPERM, // the user's keyrings aren't in any namespace
	unix.SYS_ADD_KEY:           unix.EPERM,
	unix.SYS_REQUEST_KEY:       unix.EPERM,
	unix.SYS_BPF:               unix.EPERM,
	unix.SYS_PERF_EVENT_OPEN:   unix.EPERM,
	unix.SYS_USERFAULTFD:       unix.EPERM,
	unix.SYS_OPEN_BY_HANDLE_AT: unix.EPERM,
	unix.SYS_PIDFD_GETFD:       unix.EPERM,  // would get the eventfd of bubblewrap with the exit code
	unix.SYS_OPENAT2:           unix.ENOSYS, // its mode isn't an argument; programs use openat then
}

// families are the address families of sockets. Others, such as vsock, reach around the
// network namespace.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// refusedWeaker are the system calls that namespaces make harmless and Landlock doesn't: those
// that reach sockets by name, other processes, and objects shared without a file.
var refusedWeaker = []uint32{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// Filter returns the seccomp filter of a sandboxed process as bytes for bubblewrap. It also
// refuses changes of RLIMIT_RTTIME, which marks the processes of a run. With root, it is for a run
// of root, which may not give files capabilities.
func Filter(root bool) ([]byte, error) {
	return filter(root, (*program).keepFirst, (*program).socketFamilies, (*program).keepMark)
}

// WeakerFilter returns the filter of a process without namespaces. It refuses what Filter does,
// all sockets but pairs of streams, limits of other processes, and shared memory without a file.
func WeakerFilter(root bool) ([]byte, error) {
	return filter(root, (*program).onlyStreamPairs, (*program).keepLimits)
}

// filter returns a filter with some parts that differ. The last one is for prlimit.
func filter(root bool, parts ...func(*program)) ([]byte, error) {
	arch, known := architectures[runtime.GOARCH]
	if !known {
		return nil, errors.New("make seccomp filter: the architecture " + runtime.GOARCH + " is not supported")
	}
	var p program
	p.load(offsetArch)
	p.unless(arch, retErrno|uint32(unix.ENOSYS))
	p.load(offsetNumber)
	if runtime.GOARCH == "amd64" {
		p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, x32)
		p.end(retErrno | uint32(unix.ENOSYS))
	}
	for _, number := range sorted(refused) {
		p.when(number, func() { p.end(retErrno | uint32(refused[number])) })
	}
	p.refuseSetID()
	if root {
		p.refuseAttributes()
	}
	last := len(parts) - 1
	for _, part := range parts[:last] {
		part(&p)
	}
	p.when(unix.SYS_SETRLIMIT, func() {
		p.load(argument(0))
		p.when(unix.RLIMIT_RTTIME, func() { p.end(retErrno | uint32(unix.EPERM)) })
		p.end(retAllow)
	})
	p.when(unix.SYS_PRLIMIT64, func() { parts[last](&p) })
	p.end(retAllow)
	return p.bytes(), nil
}

func (p *program) socketFamilies() {
	for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		p.when(number, func() { p.allowOnly(0, families, unix.EAFNOSUPPORT) })
	}
}

// onlyStreamPairs allows pairs of connected streams and no other sockets: a pair of datagram
// sockets could send to any name.
func (p *program) onlyStreamPairs() {
	for _, number := range refusedWeaker {
		p.when(number, func() { p.end(retErrno | uint32(unix.EPERM)) })
	}
	p.when(unix.SYS_SOCKETPAIR, func() {
		p.load(argument(0))
		p.unless(unix.AF_UNIX, retErrno|uint32(unix.EAFNOSUPPORT))
		p.load(argument(1))
		const kind = 0xf // without the flags
		p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, kind)
		p.unless(unix.SOCK_STREAM, retErrno|uint32(unix.EPERM))
		p.end(retAllow)
	})
}

// keepLimits refuses prlimit of another process, and what keepMark refuses.
func (p *program) keepLimits() {
	p.load(argument(0))
	p.unless(0, retErrno|uint32(unix.EPERM))
	p.keepMark()
}

// keepMark refuses prlimit with a new RLIMIT_RTTIME. Reading it is allowed.
func (p *program) keepMark() {
	p.load(argument(1))
	p.when(unix.RLIMIT_RTTIME, func() {
		p.load(argument(2))
		p.unless(0, retErrno|uint32(unix.EPERM))
		p.load(argument(2) + 4) // the upper half of the pointer
		p.unless(0, retErrno|uint32(unix.EPERM))
	})
	p.end(retAllow)
}

// A program is a classic BPF program in the making.
type program struct{ code []unix.SockFilter }

func (p *program) add(code uint16, jt, jf uint8, k uint32) {
	p.code = append(p.code, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

// load loads 32 bits of the call.
func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }

// end returns a verdict.
func (p *program) end(verdict uint32) { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, verdict) }

// when runs the body if the loaded value equals one. The body must end the program or leave
// it with a value that later code doesn't need.
func (p *program) when(value uint32, body func()) {
	at := len(p.code)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 0, value)
	body()
	p.code[at].Jf = uint8(len(p.code) - at - 1)
}

// unless ends the program with a verdict if the loaded value differs.
func (p *program) unless(value, verdict uint32) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, value)
	p.end(verdict)
}

// allowOnly allows the call if an argument has one of the values.
func (p *program) allowOnly(arg int, values []uint32, otherwise unix.Errno) {
	p.load(argument(arg))
	for _, value := range values {
		p.when(value, func() { p.end(retAllow) })
	}
	p.end(retErrno | uint32(otherwise))
}

// argument returns the offset of the lower half of an argument: both supported architectures
// are little-endian.
func argument(n int) uint32 { return offsetArgs + 8*uint32(n) }

func (p *program) bytes() []byte {
	text := make([]byte, 0, 8*len(p.code))
	for _, c := range p.code {
		text = binary.LittleEndian.AppendUint16(text, c.Code)
		text = append(text, c.Jt, c.Jf)
		text = binary.LittleEndian.AppendUint32(text, c.K)
	}
	return text
}

// sorted returns the numbers in a fixed order, so that the filter is always the same.
func sorted(calls map[uint32]unix.Errno) []uint32 {
	return slices.Sorted(maps.Keys(calls))
}
