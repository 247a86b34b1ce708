package runner

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// statxMountIDUnique requests a mount id that is unique until the next boot (statx(2),
// Linux 6.8). An older kernel returns STATX_MNT_ID, which can be reused.
const statxMountIDUnique = 0x4000

// Evidence identifies a run directory: the boot, the mount, the inode and its birth time.
// While it stays the same, the directory still has every file ever made in it, synced or
// not. It differs after a boot, another mount, or a restore from a copy. It is "" if the
// system can't tell.
func Evidence(dir string) string {
	const wanted = unix.STATX_INO | unix.STATX_BTIME
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, wanted|unix.STATX_MNT_ID|statxMountIDUnique, &s)
	if err != nil || s.Mask&unix.STATX_INO == 0 || s.Mask&(unix.STATX_MNT_ID|statxMountIDUnique) == 0 || Boot() == "" {
		return ""
	}
	return fmt.Sprintf("%s %d %d %d.%09d", Boot(), s.Mnt_id, s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
