package runners_test

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// work has what reaps programs.
var work sync.WaitGroup

// kill kills processes, and returns when they are gone.
func kill(pids []int) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it is gone
		}
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // likewise
		ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for _, err = unix.Poll(ended, -1); errors.Is(err, unix.EINTR); {
			_, err = unix.Poll(ended, -1)
		}
		_ = unix.Close(fd)
	}
}
