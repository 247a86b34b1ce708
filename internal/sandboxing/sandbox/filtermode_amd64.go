package sandbox

import "golang.org/x/sys/unix"

// The calls that newer architectures don't have.
var (
	oldModeCalls = []modeCall{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	oldOpenCalls = []openCall{{unix.SYS_OPEN, 1, 2}}
)
