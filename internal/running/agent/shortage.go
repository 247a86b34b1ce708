package agent

import (
	"errors"

	"golang.org/x/sys/unix"

	"mailboxd/internal/running/runner"
)

// shortages are errors of a machine, or of its keeper, that lacks a resource. The command
// isn't the reason.
var shortages = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN,
	runner.ErrKeeperGone,
}

// isShortage reports whether an error says that the machine lacks a resource.
func isShortage(err error) bool {
	for _, lack := range shortages {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}
