package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fileSystems are the magic numbers of statfs(2) that one meets.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	0x2fc12fc1:                 "zfs",
}

// machine tells what a table was measured on.
func (l *lab) machine() string {
	var kernel unix.Utsname
	_ = unix.Uname(&kernel)
	var fs unix.Statfs_t
	_ = unix.Statfs(l.dir, &fs)
	name := fileSystems[int64(fs.Type)]
	if name == "" {
		name = fmt.Sprintf("file system %#x", fs.Type)
	}
	return fmt.Sprintf("%s, %d processors, %d GB; Linux %s, %s; %s; static programs by %s; %s; load %s before; %d rounds.",
		processor(), runtime.NumCPU(), memory()>>30, unix.ByteSliceToString(kernel.Release[:]), name,
		runtime.Version(), l.tools.compiler, time.Now().Format(time.DateOnly), l.load, l.rounds)
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return runtime.GOARCH
}

// loadAverage is how many processes wanted to run in the last minute, as uptime
// says it.
func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	words := strings.Fields(string(raw) + " unknown")
	return words[0]
}

// memory is how much the machine has, rounded up to whole GB.
func memory() uint64 {
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	return info.Totalram*uint64(info.Unit) + 1<<30 - 1
}
