package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A gauge tells whether files can be created as fast as this machine does it.
// Without a journal ext4 uses no inode again that was freed in the last minute, or
// in the last six while that is not on the disk, and looks at each of those on its
// way to a free one: creating a file takes 10 times as long, or 40. Runs wait
// until that is over.
type gauge struct {
	best time.Duration // for a file, where it was fastest
	late int           // runs that began although it was slow
}

// A run waits while a file takes more than slow times the best, until patience
// ends.
const slow, patience = 3, 2 * time.Minute

// settle blocks until a look says that files are created fast.
func (g *gauge) settle(ctx context.Context, look func() (time.Duration, error)) error {
	for begin := time.Now(); ; {
		took, err := look()
		if err != nil {
			return err
		}
		g.see(took)
		if took <= slow*g.best {
			return nil
		}
		if time.Since(begin) >= patience {
			g.late++
			return nil
		}
		if err := sleep(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// see takes what a file took somewhere.
func (g *gauge) see(took time.Duration) {
	if g.best == 0 || took < g.best {
		g.best = took
	}
}

// String says what runs did not wait for; nothing when there was nothing.
func (g *gauge) String() string {
	if g.late == 0 {
		return ""
	}
	return fmt.Sprintf(" %d runs began while creating files was slow, after files were deleted.", g.late)
}

// createSome creates some files in a new directory of a directory, where ext4
// looks for inodes at the same place, and returns the processor time of each:
// the search is nothing else, and other work on the machine does not count. They
// stay: deleted ones would have to be skipped.
func createSome(dir string) (time.Duration, error) {
	const some = 200
	dir, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	for n := range some {
		fd, err := unix.Open(filepath.Join(dir, id(n)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return 0, fmt.Errorf("create a file in %s: %w", dir, err)
		}
		unix.Close(fd)
	}
	return (threadTime() - begin) / some, nil
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // there is always one
	return time.Duration(t.Nano())
}
