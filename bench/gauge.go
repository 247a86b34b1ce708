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

// A gauge starts runs where files can be created at the usual speed of this machine. ext4
// without a journal does not reuse an inode that was freed in the last minute, or in the last
// six while its block is not on the disk, and checks each of those when it searches for a free
// one: creating a file takes 20 to 50 times as long.
type gauge struct {
	late int // runs that began although creating files was slow
}

// Creating a file is slow if it takes that many times as long as linking one, which needs no
// search and otherwise takes as long. patience is the longest wait of a run.
const slow, patience = 2, 2 * time.Minute

// settle tries one location after the other, until creating a file is not slow there.
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

// String tells how many runs began although creating files was slow; "" for none.
func (g *gauge) String() string {
	if g.late == 0 {
		return ""
	}
	return fmt.Sprintf(" %d runs began while creating files was slow, after files were deleted.", g.late)
}

// searching creates some files in a new directory, where ext4 searches for inodes in the
// location of the parent directory, and links one of them as often. It returns the ratio of
// both in processor time: the difference is the search, and other work on the machine does not
// count. The files stay: deleted ones would be skipped by the next search.
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

// threadTime calls do several times, and returns the processor time of the calls.
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
