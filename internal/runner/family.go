package runner

import (
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// A family is the children of a process that hosts runs and is their
// subreaper: the runs' own processes, and the orphans that come to it when a
// process of a run dies before its children. A nil one has no members.
type family struct {
	list int // of our children, as the kernel keeps it; -1: it does not

	bearing sync.Mutex // held while a child is born and not noted: guards our mark

	mu   sync.Mutex // guards runs, and lists of children: none goes while they are read
	runs map[int]*attempt
}

// newFamily makes the family of this process. The kernel gives orphans to its
// first thread.
func newFamily() *family {
	self := strconv.Itoa(os.Getpid())
	list, err := open("/proc/self/task/"+self+"/children", unix.O_RDONLY)
	if err != nil {
		list = -1
	}
	return &family{list: list, runs: map[int]*attempt{}}
}

func (f *family) close() {
	if f.list >= 0 {
		unix.Close(f.list)
	}
}

// bear starts the process of r, and notes it before anybody can take it for an
// orphan.
func (f *family) bear(r *attempt, start func() error) error {
	if f == nil {
		return start()
	}
	f.bearing.Lock() // the kernel starts one after another anyway
	defer f.bearing.Unlock()
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

// forget takes a run out whose process is reaped: its number may be that of
// another run by now.
func (f *family) forget(r *attempt) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs[r.self.PID] == r {
		delete(f.runs, r.self.PID)
	}
}

// bury reaps the process of a run, which has ended.
func (f *family) bury(pid int) (status unix.WaitStatus, err error) {
	if f != nil {
		f.mu.Lock() // or the list of children could skip one
		defer f.mu.Unlock()
	}
	return status, uninterrupted(func() error {
		_, err := unix.Wait4(pid, &status, 0, nil)
		return err
	})
}

// hasOrphans reports whether there are children that are no run's own process.
// One that is just being born only looks like an orphan: taking it for one costs
// a census of all processes, 1 ms and more, so we wait until it is noted.
func (f *family) hasOrphans() bool {
	if f == nil || !f.hasUnknown() {
		return false
	}
	f.bearing.Lock()
	defer f.bearing.Unlock()
	return f.hasUnknown()
}

func (f *family) hasUnknown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.children(), func(pid int) bool { return f.runs[pid] == nil })
}

// left lists what the run left, out of all processes: what is in its session,
// what belongs to it among the orphans, and what descends from them.
func (f *family) left(r *attempt, all []entry) []entry {
	f.bearing.Lock() // who is listed is also noted
	defer f.bearing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	theirs := map[int]bool{} // by PID
	for _, e := range all {
		if e.PID == r.self.PID {
			return nil // ours is reaped: somebody new has its number, so nothing of ours held it
		}
		theirs[e.PID] = e.PID != os.Getpid() && f.runs[e.PID] == nil && f.owner(e, r) == r
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

// owner returns the run that a process belongs to. An orphan of which nothing
// tells, where there are no marks, is taken for one of ending once no other run
// is left that could have started it.
func (f *family) owner(e entry, ending *attempt) *attempt {
	mark := markOf(e.PID)
	dir, _ := environ(e.PID, DirVariable)
	for pid, r := range f.runs {
		if e.in(pid) || mark != 0 && mark == r.mark || dir == r.spec.Dir {
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

// reap buries the orphans that are dead. It leaves the runs' own processes to
// those who wait for them.
func (f *family) reap() {
	f.bearing.Lock()
	defer f.bearing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pid := range f.children() {
		if f.runs[pid] == nil {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // one that lives is left alone
		}
	}
}

// children lists the children that came to us as orphans, dead ones too, and
// perhaps some of our own.
func (f *family) children() []int {
	if f.list < 0 {
		return childrenOf(os.Getpid())
	}
	var buf [4096]byte
	var pids []int
	pid := 0
	for offset := int64(0); ; {
		n := 0
		err := uninterrupted(func() (err error) {
			n, err = unix.Pread(f.list, buf[:], offset)
			return err
		})
		if err != nil {
			return childrenOf(os.Getpid())
		}
		if n == 0 {
			return pids
		}
		for _, c := range buf[:n] { // each number has a blank behind it
			if c != ' ' {
				pid = 10*pid + int(c-'0')
				continue
			}
			pids, pid = append(pids, pid), 0
		}
		offset += int64(n)
	}
}

// childrenOf is for a kernel without such a list.
func childrenOf(parent int) []int {
	var pids []int
	for _, e := range only(entries(), func(e entry) bool { return e.Parent == parent }) {
		pids = append(pids, e.PID)
	}
	return pids
}
