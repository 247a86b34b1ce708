package runner

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// statxMountIDUnique asks for the id of a mount that no later mount gets before
// the next boot (statx(2), Linux 6.8). An older kernel gives STATX_MNT_ID, which a
// later mount may get again.
const statxMountIDUnique = 0x4000

// Evidence names a run directory as it is now: the boot, the mount, the inode
// and the birth of the inode. As long as it stays the same, the directory shows
// all that was ever made in it, synced or not. After a boot, another mount, or a
// restore from a copy it is another one. It is "" when the system cannot tell.
func Evidence(dir string) string {
	const wanted = unix.STATX_INO | unix.STATX_BTIME
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, wanted|unix.STATX_MNT_ID|statxMountIDUnique, &s)
	if err != nil || s.Mask&unix.STATX_INO == 0 || s.Mask&(unix.STATX_MNT_ID|statxMountIDUnique) == 0 || Boot() == "" {
		return ""
	}
	return fmt.Sprintf("%s %d %d %d.%09d", Boot(), s.Mnt_id, s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
