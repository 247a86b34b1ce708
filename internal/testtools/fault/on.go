//go:build faults

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The environment that steers a process built with the tag.
const (
	killAt  = "MAILBOXD_FAULT"      // "name:n": kill the own process with SIGKILL at the n-th crossing of that point
	once    = "MAILBOXD_FAULT_ONCE" // the first to die makes this file, and nobody dies while it is there
	bootID  = "MAILBOXD_FAULT_BOOT" // what to take for the id of the machine's boot
	logFile = "MAILBOXD_FAULT_LOG"  // one line is appended to this file for each crossing
)

// tally counts the crossings of this process.
var tally = struct {
	mu    sync.Mutex // guards count, and keeps a death the last line of the log
	count map[string]int
}{count: map[string]int{}}

// Point marks the moment after a durable step of that name: it logs "crossed
// name pid" and, when this is the crossing that was asked for, "died name pid
// nanoseconds", and then the process is gone. It is safe for concurrent use.
func Point(name string) {
	target, nth, asked := strings.Cut(os.Getenv(killAt), ":")
	if !asked && os.Getenv(logFile) == "" {
		return
	}
	tally.mu.Lock()
	defer tally.mu.Unlock()
	tally.count[name]++
	note("crossed", name, os.Getpid())
	if n, err := strconv.Atoi(nth); err != nil || target != name || n != tally.count[name] || !first() {
		return
	}
	note("died", name, os.Getpid(), time.Now().UnixNano())
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way, and nothing may follow the point
}

// Synced marks the moment after a sync of that name, as Point does, and logs
// what is on disk by then: "synced inode length" for a file and "named path
// entries..." for a directory.
func Synced(name string, file *os.File) {
	SyncedAt(name, "/proc/self/fd/"+strconv.Itoa(int(file.Fd())))
}

// SyncedAt is Synced for the file at a path, which somebody else synced for us.
func SyncedAt(name, path string) {
	if os.Getenv(logFile) != "" {
		noteSynced(path)
	}
	Point(name)
}

func noteSynced(path string) {
	tally.mu.Lock()
	defer tally.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return // missed, and so taken for lost
	}
	if !info.IsDir() {
		note("synced", info.Sys().(*syscall.Stat_t).Ino, info.Size())
		return
	}
	words := []any{"named", full(path)}
	entries, _ := os.ReadDir(path) // what cannot be read is missed
	for _, entry := range entries {
		words = append(words, entry.Name())
	}
	note(words...)
}

// Removed notes that a name was taken out of a directory, "removed path": until
// that is synced, a power cut may bring it back. It is no Point.
func Removed(dir *os.File, name string) {
	tally.mu.Lock()
	defer tally.mu.Unlock()
	note("removed", full("/proc/self/fd/"+strconv.Itoa(int(dir.Fd())))+"/"+name)
}

// full is where a path leads to.
func full(path string) string {
	full, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	return full
}

// first reports whether nobody has died yet: a process that is started again
// with the same environment is to live.
func first() bool {
	path := os.Getenv(once)
	if path == "" {
		return true
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// note appends a line. What cannot be noted is not worth a failure of its own:
// the harness misses it and says so.
func note(words ...any) {
	path := os.Getenv(logFile)
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintln(file, words...)
}

// Boot returns the id of the machine's boot, or of the one that is to be
// played: a machine cannot be restarted for a test.
func Boot(id string) string {
	if played := os.Getenv(bootID); played != "" {
		return played
	}
	return id
}
