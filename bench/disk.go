package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// enough is how many bytes of used directories make it worth to remove them.
// Runs after it may have to look for another place, or wait; see gauge.
const enough = 4 << 30

// tidy removes the directories that were used when they have enough of the
// disk. The last ones go with the lab.
func (l *lab) tidy(dir string) error {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // a keeper that leaves cleans up
			return nil
		}
		if err == nil {
			l.blocks += info.Sys().(*syscall.Stat_t).Blocks
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look what %s has of the disk: %w", dir, err)
	}
	l.used = append(l.used, dir)
	if l.blocks*512 < enough {
		return nil
	}
	for _, dir := range l.used {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	l.used, l.blocks = nil, 0
	return err
}

// spread asks ext4 to keep the directories of a directory apart, so that few runs
// are laid where another one was removed; see gauge. Other file systems need not be
// asked.
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
