package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A lab is where measures are made: a directory that is gone afterwards, and
// the programs in it.
type lab struct {
	rounds int
	tasks  int
	long   bool
	dir    string
	tools  tools
	begun  time.Time
	load   string // of the machine, by others
}

// open makes the directory and builds what is measured.
func (l *lab) open(ctx context.Context, where string) (err error) {
	l.begun, l.load = time.Now(), loadAverage()
	l.dir, err = os.MkdirTemp(where, "bench-")
	if err != nil {
		return fmt.Errorf("open lab: %w", err)
	}
	spread(l.dir)
	if l.tools, err = build(ctx, filepath.Join(l.dir, "bin")); err != nil {
		l.close()
		return fmt.Errorf("open lab: %w", err)
	}
	return nil
}

func (l *lab) close() {
	if err := os.RemoveAll(l.dir); err != nil {
		l.say("%v", err)
	}
}

// say tells how far we are.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0fs  "+format+"\n", append([]any{time.Since(l.begun).Seconds()}, args...)...)
}

// spread asks ext4 to keep the directories of a directory apart. It skips what
// was deleted in the last minutes when it looks for a free inode, one by one: a
// run beside one that was cleaned up would pay for it, up to 1 ms for each file.
// Other file systems need not be asked.
func spread(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	const topDir = 0x20000 // FS_TOPDIR_FL of linux/fs.h
	flags, err := unix.IoctlGetInt(int(d.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		_ = unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}

// in has something done in a new directory, which is removed afterwards. What
// was written before is on the disk by then, so that nobody pays for others.
func (l *lab) in(do func(dir string) error) error {
	dir, err := os.MkdirTemp(l.dir, "") // where ext4 puts it, its name decides
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unix.Sync()
	return do(dir)
}

// room fails when the file system has not so many bytes left.
func (l *lab) room(bytes uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(l.dir, &fs); err != nil {
		return fmt.Errorf("look for room in %s: %w", l.dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < bytes {
		return fmt.Errorf("%s has %d MB left; this needs %d", l.dir, free>>20, bytes>>20)
	}
	return nil
}
