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

// enough is the size of used directories, in bytes, at which they are removed. Runs after a
// removal may have to search for another location, or wait; see gauge.
const enough = 4 << 30

// tidy removes the used directories if they are large enough. The last ones are removed with
// the lab.
func (l *lab) tidy(dir string) error {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // a keeper removes its files when it exits
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

// spread asks ext4 to keep the subdirectories of a directory apart, so that few runs get the
// location of a removed one; see gauge. Other file systems don't need it.
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

// room fails if the file system has less free space.
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
