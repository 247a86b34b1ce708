package dispatch

import (
	"errors"
	"sync"
	"syscall"

	"mailboxd/internal/ledger"
)

// mends says what a person can do about what a machine has too little of.
var mends = map[syscall.Errno]string{
	syscall.ENOSPC: "make room on the disk",
	syscall.EDQUOT: "make room in the disk quota",
	syscall.EROFS:  "make the file system writable again",
	syscall.EIO:    "look after the disk",
	syscall.EMFILE: "raise the limit of open files (ulimit -n, LimitNOFILE)",
	syscall.ENFILE: "raise the system's limit of open files (fs.file-max)",
	syscall.ENOMEM: "give the machine more memory, or fewer agents at once",
	syscall.EAGAIN: "raise the limit of processes (ulimit -u, TasksMax)",
}

// mend returns the mend of an error that is the machine's, not a task's.
func mend(err error) (string, bool) {
	errno, _ := errors.AsType[syscall.Errno](err)
	words, ok := mends[errno]
	return words, ok
}

// faults remembers what does not work, so that it is logged once and not with
// each attempt or each task.
type faults struct {
	mu  sync.Mutex // guards now
	now map[string]bool
}

func newFaults() *faults { return &faults{now: map[string]bool{}} }

// begin reports whether a fault is news.
func (f *faults) begin(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	news := !f.now[what]
	f.now[what] = true
	return news
}

// end reports whether there was such a fault.
func (f *faults) end(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.now[what]
	delete(f.now, what)
	return was
}

// What may be at fault for all tasks alike.
const (
	starting   = "tasks cannot be started"
	recording  = "ledger cannot be written"
	judging    = "tasks cannot be looked at"
	delivering = "results cannot be delivered"
	restoring  = "missing results cannot be put again"
	telling    = "requesters cannot be told"
)

// complain logs a fault once. What concerns all tasks is logged for the first
// of them, with its mend.
func (d *Dispatcher) complain(what string, row ledger.Task, err error) {
	if !d.faults.begin(what) {
		return
	}
	line := d.log(row).Error().Err(err)
	if words, ok := mend(err); ok {
		line.Str("mend", words)
	}
	line.Msg(what + "; trying again")
}

// relax logs that what did not work does so again.
func (d *Dispatcher) relax(what string) {
	if d.faults.end(what) {
		d.opts.Log.Info().Str("was", what).Msg("works again")
	}
}
