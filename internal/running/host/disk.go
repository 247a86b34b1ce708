package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A Disk is what a file system has left for this user.
type Disk struct {
	Bytes    uint64
	Inodes   uint64
	Counts   bool // it has a fixed number of inodes
	ReadOnly bool
}

// DiskOf returns that of the file system on which path lies.
func DiskOf(path string) (Disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Disk{}, fmt.Errorf("look at the disk of %s: %w", path, err)
	}
	return Disk{
		Bytes:  s.Bavail * uint64(s.Bsize),
		Inodes: s.Ffree, Counts: s.Files > 0,
		ReadOnly: s.Flags&unix.ST_RDONLY != 0,
	}, nil
}
