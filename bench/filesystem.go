package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// fileSystems are the magic numbers of statfs(2) for common file systems.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	0x2fc12fc1:                 "zfs",
}

// fileSystem names the file system of a directory, for ext4 also whether it has a journal,
// which changes the cost of a sync.
func fileSystem(dir string) string {
	var fs unix.Statfs_t
	_ = unix.Statfs(dir, &fs)
	name := fileSystems[int64(fs.Type)]
	switch name {
	case "":
		return fmt.Sprintf("file system %#x", fs.Type)
	case "ext4":
		return name + journal(options(dir))
	}
	return name
}

// options returns the mount options of the ext4 of a directory, defaults included; "" if
// unknown.
func options(dir string) string {
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil {
		return ""
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(info.Dev), unix.Minor(info.Dev)))
	if err != nil {
		return ""
	}
	raw, _ := os.ReadFile(filepath.Join("/proc/fs/ext4", filepath.Base(device), "options"))
	return string(raw)
}

// journal describes the journal of ext4 by its mount options: only a file system with a journal
// has a mode for it.
func journal(options string) string {
	if options == "" {
		return ""
	}
	for option := range strings.Lines(options) {
		if mode, ok := strings.CutPrefix(strings.TrimSpace(option), "data="); ok {
			return " with a journal (" + mode + ")"
		}
	}
	return " without a journal"
}
