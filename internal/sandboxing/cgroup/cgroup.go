// Package cgroup limits the memory and the processes of a run by a cgroup of its own, where one
// is delegated to mailboxd.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Leaf is the name that the cgroup of the daemon has to have. The cgroup above it is delegated:
// it has no processes of its own, and runs get cgroups in it. The unit of mailboxd service asks
// systemd for both. The name is the sign, since root could write to any cgroup.
const Leaf = "mailboxd"

// Limits are those of one run. Zero is no limit.
type Limits struct {
	Memory    int64 // bytes, without swap
	Processes int64 // and threads
}

// controllers returns the controllers that limits need.
func (l Limits) controllers() (names []string) {
	if l.Memory > 0 {
		names = append(names, "memory")
	}
	if l.Processes > 0 {
		names = append(names, "pids")
	}
	return names
}

// Delegated returns the cgroup that is delegated to mailboxd, of which a process of the daemon
// is in the leaf. The error says what to do.
func Delegated(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", fmt.Errorf("find cgroup of mailboxd: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup of mailboxd: %w", err)
	}
	own, err := locate(string(text), string(mounts))
	if err != nil {
		return "", fmt.Errorf("%w%s", err, advice)
	}
	if filepath.Base(own) != Leaf {
		return "", fmt.Errorf("no cgroup is delegated to mailboxd, which is in %s: run it as the service of mailboxd service install, with systemd 254 or later%s", own, advice)
	}
	dir := filepath.Dir(own)
	if err := checkWritable(dir); err != nil {
		return "", err
	}
	return dir, nil
}

const advice = "; see \"Memory and processes\" in docs/sandbox.md"

// checkWritable returns an error unless this process may make cgroups in a cgroup. It doesn't wrap
// its cause: a read-only file system is no shortage, which a later try might not meet.
func checkWritable(dir string) error {
	for _, path := range []string{dir, filepath.Join(dir, "cgroup.procs"), filepath.Join(dir, "cgroup.subtree_control")} {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return fmt.Errorf("the cgroup of mailboxd is not delegated: write %s: %v%s", path, err, advice)
		}
	}
	return nil
}

// locate returns the directory of a cgroup, from the content of /proc/PID/cgroup and
// /proc/self/mountinfo.
func locate(cgroups, mounts string) (string, error) {
	path := ""
	for line := range strings.Lines(cgroups) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(rest, "\n")
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		const root, point = 3, 4
		if len(fields) <= point || len(kind) == 0 || kind[0] != "cgroup2" {
			continue
		}
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(fields[root], "/"))
		if ok && path != "" && (rest == "" || rest[0] == '/') {
			return filepath.Join(fields[point], rest), nil
		}
	}
	return "", errors.New("this machine has no cgroup of version 2 for mailboxd")
}

// CanLimit reports whether a delegated cgroup has the controllers that limits need.
func CanLimit(dir string, l Limits) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers of cgroup: %w", err)
	}
	have := strings.Fields(string(text))
	for _, name := range l.controllers() {
		if !slices.Contains(have, name) {
			return fmt.Errorf("the cgroup %s has no controller %s: delegate it, such as by Delegate=memory pids in the unit", dir, name)
		}
	}
	return nil
}

// A Group is the cgroup of one run.
type Group struct {
	dir  string
	file *os.File
}

// made counts the groups of this process.
var made atomic.Int64

// prefix begins the names of groups: the maker and a number follow.
const prefix = "run-"

// New makes a cgroup with limits, beside that of this process. It removes groups that killed
// makers left.
func New(l Limits) (*Group, error) {
	parent, err := Delegated(os.Getpid())
	if err == nil {
		err = CanLimit(parent, l)
	}
	if err != nil {
		return nil, err
	}
	Sweep(parent)
	for _, name := range l.controllers() {
		if err := write(parent, "cgroup.subtree_control", "+"+name); err != nil {
			return nil, fmt.Errorf("enable controller %s of cgroup: %w", name, err)
		}
	}
	g := &Group{dir: filepath.Join(parent, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), made.Add(1)))}
	if err := os.Mkdir(g.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	err = g.limit(l)
	if err == nil {
		g.file, err = os.Open(g.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("limit cgroup: %w", errors.Join(err, os.Remove(g.dir)))
	}
	return g, nil
}

func (g *Group) limit(l Limits) error {
	if l.Memory > 0 {
		if err := write(g.dir, "memory.max", strconv.FormatInt(l.Memory, 10)); err != nil {
			return err
		}
		// A kernel that doesn't count swap has no such file.
		if err := write(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if l.Processes > 0 {
		return write(g.dir, "pids.max", strconv.FormatInt(l.Processes, 10))
	}
	return nil
}

// write writes to an existing file of a cgroup.
func write(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// FD is the descriptor of the group, for starting a process in it.
func (g *Group) FD() int { return int(g.file.Fd()) }

// OutOfMemory reports whether the kernel killed processes of the group because of its limit.
func (g *Group) OutOfMemory() bool {
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return false // without a limit of memory
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(count) != "0"
		}
	}
	return false
}

// Remove kills the processes that are left in the group, and removes it.
func (g *Group) Remove() error {
	_ = g.file.Close() // a directory
	return remove(g.dir)
}

// remove waits for killed processes: their end takes the kernel a moment.
func remove(dir string) error {
	_ = write(dir, "cgroup.kill", "1") // before Linux 5.14, the runner has ended them
	err := os.Remove(dir)
	const longest = time.Second
	for pause := time.Millisecond; errors.Is(err, syscall.EBUSY) && pause < longest; pause *= 2 {
		time.Sleep(pause)
		err = os.Remove(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes groups without processes whose makers are gone.
func Sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // New fails then
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		maker, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(maker)
		if !ok || err != nil || pid <= 0 || unix.Kill(pid, 0) != unix.ESRCH {
			continue
		}
		_ = os.Remove(filepath.Join(parent, e.Name())) // one with processes stays: somebody ends its run
	}
}
