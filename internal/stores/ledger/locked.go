package ledger

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// writeLock is the offset of SQLite's lock for writing, in the index of the write-ahead log.
const writeLock = 120

// lockedBy says which program keeps a ledger locked, as far as that can be found out.
func lockedBy(path string) string {
	pid := holder(path+"-shm", writeLock)
	if pid <= 0 {
		return path + " is locked by another program"
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("%s is locked by process %d", path, pid)
	}
	return fmt.Sprintf("%s is locked by process %d (%s)", path, pid, strings.TrimSpace(string(name)))
}

// holder returns the process that has a byte of a file locked for itself alone; 0 if none has, or it
// isn't known. It opens no file that SQLite has open: closing that would give up SQLite's own locks.
func holder(path string, at int64) (pid int) {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: POSIX  ADVISORY  WRITE 1234 fd:01:5678 120 120
		words := strings.Fields(lines.Text())
		if len(words) != 8 || words[3] != "WRITE" || !strings.HasSuffix(words[5], inode) {
			continue
		}
		from, err1 := strconv.ParseInt(words[6], 10, 64)
		to, err2 := strconv.ParseInt(words[7], 10, 64)
		if err1 == nil && err2 == nil && from <= at && at <= to {
			pid, _ = strconv.Atoi(words[4])
			return pid
		}
	}
	return 0
}
