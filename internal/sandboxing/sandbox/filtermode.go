package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// setID are the bits of a mode that start a file as its owner and its group. A file of root with
// them would make another user root, outside of the sandbox.
const setID = unix.S_ISUID | unix.S_ISGID

// A modeCall is a system call with the mode of a file as an argument. The kernel ignores these
// bits of mkdir.
type modeCall struct{ number, mode uint32 }

// modeCalls are the calls of all architectures.
var modeCalls = []modeCall{
	{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2},
}

// An openCall is a system call that has a mode if its flags make a file.
type openCall struct{ number, flags, mode uint32 }

var openCalls = []openCall{{unix.SYS_OPENAT, 2, 3}}

// makesFile are the flags with which open makes a file.
const makesFile = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// refuseSetID refuses to make set-user-id and set-group-id files.
func (p *program) refuseSetID() {
	refuse := func(mode uint32) {
		p.load(argument(int(mode)))
		p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, setID)
		p.end(retErrno | uint32(unix.EPERM))
		p.end(retAllow)
	}
	for _, c := range slices.Concat(modeCalls, oldModeCalls) {
		p.when(c.number, func() { refuse(c.mode) })
	}
	for _, c := range slices.Concat(openCalls, oldOpenCalls) {
		p.when(c.number, func() {
			p.load(argument(int(c.flags)))
			p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 1, 0, makesFile)
			p.end(retAllow)
			refuse(c.mode)
		})
	}
}

// setAttributes are the system calls that write extended attributes.
var setAttributes = []uint32{unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT}

// refuseAttributes refuses to write extended attributes: an attribute holds the capabilities of a
// file. A process of root that makes a user namespace may write it, and it counts outside of the
// sandbox. The error is that of a file system without attributes.
func (p *program) refuseAttributes() {
	for _, number := range setAttributes {
		p.when(number, func() { p.end(retErrno | uint32(unix.EOPNOTSUPP)) })
	}
}

// first is the first process in the PID namespace of a sandbox. It belongs to bubblewrap, and
// reports the exit code of the run.
const first = 1

// keepFirst refuses to trace the first process, and to read and write its memory. Options covers
// its directory in /proc.
func (p *program) keepFirst() {
	for _, c := range []struct {
		number uint32
		pid    int
	}{{unix.SYS_PTRACE, 1}, {unix.SYS_PROCESS_VM_READV, 0}, {unix.SYS_PROCESS_VM_WRITEV, 0}} {
		p.when(c.number, func() {
			p.load(argument(c.pid))
			p.when(first, func() { p.end(retErrno | uint32(unix.EPERM)) })
			p.end(retAllow)
		})
	}
}
