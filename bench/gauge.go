package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A gauge has runs begin where files can be created as fast as this machine does it.
// Without a journal ext4 uses no inode again that was freed in the last minute, or
// in the last six while its block is not on the disk, and looks at each of those on
// its way to a free one: creating a file takes 20 times as long, or 50.
type gauge struct {
	late int // runs that began although it was slow
}

// Creating a file is slow when it takes so many times as long as giving one another
// name, which searches for nothing and takes as long else. A run has patience.
const slow, patience = 2, 2 * time.Minute

// settle looks at one place after the other, until creating a file is not slow
// there.
func (g *gauge) settle(ctx context.Context, look func() (times float64, err error)) error {
	for begin := time.Now(); ; {
		times, err := look()
		if err != nil || times <= slow {
			return err
		}
		if time.Since(begin) >= patience {
			g.late++
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// String says what runs did not wait for; nothing when there was nothing.
func (g *gauge) String() string {
	if g.late == 0 {
		return ""
	}
	return fmt.Sprintf(" %d runs began while creating files was slow, after files were deleted.", g.late)
}

// searching creates some files in a new directory of a directory, where ext4 looks
// for inodes at the same place, and names one of them as often. It returns how many
// times as long creating takes, in processor time: the search is nothing else, and
// other work on the machine does not count. They stay: deleted ones would have to
// be skipped.
func searching(dir string) (times float64, err error) {
	dir, err = os.MkdirTemp(dir, "probe-")
	if err != nil {
		return 0, err
	}
	create, err := threadTime(func(n int) error {
		fd, err := unix.Open(filepath.Join(dir, id(n)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	if err != nil {
		return 0, fmt.Errorf("create files in %s: %w", dir, err)
	}
	name, err := threadTime(func(n int) error {
		return unix.Link(filepath.Join(dir, id(0)), filepath.Join(dir, "again-"+id(n)))
	})
	if err != nil {
		return 0, fmt.Errorf("name files in %s: %w", dir, err)
	}
	return create.Seconds() / name.Seconds(), nil
}

// threadTime does a thing some times, and returns the processor time of that.
func threadTime(do func(n int) error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var begin, end unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &begin)
	for n := 0; n < 200 && err == nil; n++ {
		err = do(n)
	}
	err = errors.Join(err, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &end))
	return time.Duration(end.Nano() - begin.Nano()), err
}
