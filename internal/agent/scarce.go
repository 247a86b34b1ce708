package agent

import (
	"errors"

	"golang.org/x/sys/unix"

	"mailboxd/internal/runner"
)

// shortages are what a machine answers when it has too little of something
// now, a keeper among them. They say nothing about the command.
var shortages = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN,
	runner.ErrKeeperGone,
}

// scarce reports whether an error is a shortage of the machine.
func scarce(err error) bool {
	for _, lack := range shortages {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}
