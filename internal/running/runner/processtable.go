package runner

import (
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// A processTable holds the children of a process that hosts runs as their subreaper: the
// runs' own processes, and orphans of processes that died before their children. A nil
// table is empty.
type processTable struct {
	childList int // the kernel's list of children; -1: not supported

	spawning sync.Mutex // held from the start of a child until it is in runs; guards this process's mark

	mu      sync.Mutex // guards the fields below, and keeps children from being reaped while the list is read
	runs    map[int]*attempt
	helpers map[int]bool // children that are part of no run
}

// newProcessTable returns the table of this process. The kernel gives orphans to its first
// thread.
func newProcessTable() *processTable {
	self := strconv.Itoa(os.Getpid())
	list, err := open("/proc/self/task/"+self+"/children", unix.O_RDONLY)
	if err != nil {
		list = -1
	}
	return &processTable{childList: list, runs: map[int]*attempt{}, helpers: map[int]bool{}}
}

func (f *processTable) close() {
	if f.childList >= 0 {
		unix.Close(f.childList)
	}
}

// spawn starts the process of r, and adds it before it can look like an orphan.
func (f *processTable) spawn(r *attempt, start func() error) error {
	if f == nil {
		return start()
	}
	f.spawning.Lock() // the kernel starts one process at a time anyway
	defer f.spawning.Unlock()
	mark, unset := markFor(r.spec.Dir).set()
	r.mark = mark
	err := withSlack(usualSlack, start)
	unset()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[r.self.PID] = r
	return nil
}

// remove removes a run whose process is reaped, because its PID can be reused.
func (f *processTable) remove(r *attempt) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs[r.self.PID] == r {
		delete(f.runs, r.self.PID)
	}
}

// wait reaps the process of a run that has ended.
func (f *processTable) wait(pid int) (status unix.WaitStatus, err error) {
	if f != nil {
		f.mu.Lock() // or a reader of the list could skip a child
		defer f.mu.Unlock()
	}
	return status, uninterrupted(func() error {
		_, err := unix.Wait4(pid, &status, 0, nil)
		return err
	})
}

// hasOrphans reports whether there are children that aren't a run's own process. A child
// that is being started looks like an orphan until it is added. A scan of all processes
// takes 1 ms and more, so hasOrphans waits for that first.
func (f *processTable) hasOrphans() bool {
	if f == nil || !f.hasUnknown() {
		return false
	}
	f.spawning.Lock()
	defer f.spawning.Unlock()
	return f.hasUnknown()
}

func (f *processTable) hasUnknown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.children(), f.isUnknown)
}

// isUnknown reports whether a child is neither a run's own process nor a helper. The caller
// holds mu.
func (f *processTable) isUnknown(pid int) bool { return f.runs[pid] == nil && !f.helpers[pid] }

// spawnHelper starts a child that is part of no run.
func (f *processTable) spawnHelper(start func() (int, error)) (int, error) {
	if f == nil {
		return start()
	}
	f.spawning.Lock() // so that it gets no mark
	defer f.spawning.Unlock()
	pid, err := start()
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.helpers[pid] = true
	return pid, nil
}

// endHelper kills and reaps a helper.
func (f *processTable) endHelper(pid int) {
	_ = unix.Kill(pid, unix.SIGKILL) // it isn't reaped, so no other process has its number
	_, _ = f.wait(pid)
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.helpers, pid)
	}
}

// remaining lists the processes that a run left, out of all: those in its session, its
// orphans, and their descendants.
func (f *processTable) remaining(r *attempt, all []entry) []entry {
	f.spawning.Lock() // every listed process is also in runs
	defer f.spawning.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	theirs := map[int]bool{} // by PID
	for _, e := range all {
		if e.PID == r.self.PID {
			return nil // the run's process is reaped and its PID reused, so no process of the run held it
		}
		theirs[e.PID] = e.PID != os.Getpid() && f.isUnknown(e.PID) && f.owner(e, r) == r
	}
	for more := true; more; {
		more = false
		for _, e := range all {
			if theirs[e.Parent] && !theirs[e.PID] {
				theirs[e.PID], more = true, true
			}
		}
	}
	return only(all, func(e entry) bool { return theirs[e.PID] })
}

// owner returns the run of a process. Without marks, an unidentified orphan counts as the
// ending run's if no other run could have started it.
func (f *processTable) owner(e entry, ending *attempt) *attempt {
	mark := markOf(e.PID)
	dir, _ := environ(e.PID, DirVariable)
	for pid, r := range f.runs {
		if e.inGroup(pid) || mark != 0 && mark == r.mark || dir == r.spec.Dir {
			return r
		}
	}
	if e.Parent != os.Getpid() {
		return nil
	}
	for _, r := range f.runs {
		if r != ending && r.self.Start <= e.Start {
			return nil
		}
	}
	return ending
}

// reapOrphans reaps dead orphans. The waiters of the runs reap their own processes.
func (f *processTable) reapOrphans() {
	f.spawning.Lock()
	defer f.spawning.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pid := range f.children() {
		if f.isUnknown(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // doesn't block on a live one
		}
	}
}

// children lists this process's orphans, also dead ones, and perhaps some of the runs' own
// processes.
func (f *processTable) children() []int {
	if f.childList < 0 {
		return childrenOf(os.Getpid())
	}
	var buf [4096]byte
	var pids []int
	pid := 0
	for offset := int64(0); ; {
		n := 0
		err := uninterrupted(func() (err error) {
			n, err = unix.Pread(f.childList, buf[:], offset)
			return err
		})
		if err != nil {
			return childrenOf(os.Getpid())
		}
		if n == 0 {
			return pids
		}
		for _, c := range buf[:n] { // a space follows each number
			if c != ' ' {
				pid = 10*pid + int(c-'0')
				continue
			}
			pids, pid = append(pids, pid), 0
		}
		offset += int64(n)
	}
}

// childrenOf lists the children on a kernel without such a list.
func childrenOf(parent int) []int {
	var pids []int
	for _, e := range only(entries(), func(e entry) bool { return e.Parent == parent }) {
		pids = append(pids, e.PID)
	}
	return pids
}
