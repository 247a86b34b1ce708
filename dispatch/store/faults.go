package store

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// hints says what an operator can do when the machine lacks a resource.
var hints = map[syscall.Errno]string{
	syscall.ENOSPC: "make room on the disk",
	syscall.EDQUOT: "make room in the disk quota",
	syscall.EFBIG:  "raise the limit of a file's size (ulimit -f, LimitFSIZE)",
	syscall.EROFS:  "make the file system writable again",
	syscall.EIO:    "look after the disk",
	syscall.EMFILE: "raise the limit of open files (ulimit -n, LimitNOFILE)",
	syscall.ENFILE: "raise the system's limit of open files (fs.file-max)",
	syscall.ENOMEM: "give the machine more memory, or fewer agents at once",
	syscall.EAGAIN: "raise the limit of processes (ulimit -u, TasksMax)",
}

// MachineHint returns the hint for an error of the machine; false for an error of one task.
func MachineHint(err error) (string, bool) {
	errno, _ := errors.AsType[syscall.Errno](err)
	text, ok := hints[errno]
	return text, ok
}

// hint says what an operator can do about an error. It is never empty.
func hint(err error) string {
	if text, ok := MachineHint(err); ok {
		return text
	}
	if unfitErr, ok := errors.AsType[*mailbox.UnfitError](err); ok {
		return unfitErr.Hint
	}
	switch {
	case errors.Is(err, mailbox.ErrUnterminated):
		return "end the line with a newline"
	case errors.Is(err, mailbox.ErrNotRegular):
		return "move it out of tasks/, or put a regular file in its place"
	case errors.Is(err, fs.ErrPermission):
		return "give the user of the daemon permission to read and write it"
	}
	return "remove the cause that the reason names"
}

// A Fault is a current failure. The failed operation is tried again until it works.
type Fault struct {
	What   string // the text of the log: "dead letters cannot be appended"
	File   string // the task file that is not read, relative to the root; "" when the fault concerns no single file
	Reason string
	Hint   string // what an operator can do about it
	Since  time.Time
}

// FaultLog keeps the current faults, so that each fault is logged once and not per attempt or
// task.
type FaultLog struct {
	log zerolog.Logger

	mu  sync.Mutex // guards now and by
	now map[string]Fault
	by  map[string]int64 // the task that reported a fault last
}

// NewFaultLog returns a log without faults.
func NewFaultLog(log zerolog.Logger) *FaultLog {
	return &FaultLog{log: log, now: map[string]Fault{}, by: map[string]int64{}}
}

// begin records a fault that a task reported, or none (0). It returns the earlier record; zero:
// the fault is new.
func (f *FaultLog) begin(key string, fault Fault, by int64) (before Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.now[key]
	if fault.Since = before.Since; fault.Since.IsZero() {
		fault.Since = time.Now()
	}
	f.now[key], f.by[key] = fault, by
	return before
}

// end removes a fault, and reports whether it was recorded.
func (f *FaultLog) end(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found := f.now[key]
	delete(f.now, key)
	delete(f.by, key)
	return found
}

// Rejecting, Starting, Sending, Reading, Judging, Delivering, Restoring and Notifying are the faults
// that other packages report. The text is the message of the log.
const (
	taking     = "no tasks can be taken in"
	Rejecting  = "dead letters cannot be appended"
	Starting   = "tasks cannot be started"
	Sending    = "jobs cannot be sent to runners"
	recording  = "ledger cannot be written"
	Reading    = "answers cannot be read"
	Judging    = "tasks cannot be looked at"
	Delivering = "results cannot be delivered"
	Restoring  = "missing results cannot be put again"
	Notifying  = "requesters cannot be notified"
	passedOver = "task file passed over"
)

// forAll lists the faults that concern all tasks, although each is logged with the first task.
var forAll = []string{taking, Rejecting, Starting, Sending, recording, Judging, Delivering, Restoring, Notifying}

// Shared returns the faults that concern more than one task, or a task file, oldest first.
func (f *FaultLog) Shared() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := maps.Clone(f.now)
	maps.DeleteFunc(shared, func(_ string, f Fault) bool { return f.What == "" })
	return slices.SortedFunc(maps.Values(shared), func(a, b Fault) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.What, b.What), cmp.Compare(a.File, b.File))
	})
}

// Report logs a fault once, with its hint. A fault of all tasks is logged with the first task.
func (f *FaultLog) Report(what string, row task.Task, err error) {
	fault := Fault{Reason: err.Error(), Hint: hint(err)}
	if row.ID == "" || slices.Contains(forAll, what) {
		fault.What = what
	}
	if before := f.begin(what, fault, row.Seq); before.Since.IsZero() {
		taskLogger(f.log, row).Error().Err(err).Str("hint", fault.Hint).Msg(what + "; trying again")
	}
}

// AbandonCallback logs that a failed callback of a task is not tried again by itself.
func (f *FaultLog) AbandonCallback(what string, row task.Task, err error) {
	f.end(what)
	advice := hint(err) + "; then: mailboxd release " + string(row.ID)
	if errors.Is(err, syscall.ENAMETOOLONG) {
		advice = "the name in the callback is too long; send the task again with a shorter one"
	}
	taskLogger(f.log, row).Error().Err(err).Str("hint", advice).Msg(what + "; not trying again")
}

// Clear removes a fault, and logs that the operation works again.
func (f *FaultLog) Clear(what string) {
	if f.end(what) {
		f.log.Info().Str("was", what).Msg("fault cleared")
	}
}

// ClearFor is Clear for a fault that no other task has reported after this one.
func (f *FaultLog) ClearFor(what string, row task.Task) {
	f.mu.Lock()
	last, found := f.by[what]
	f.mu.Unlock()
	if found && last == row.Seq {
		f.Clear(what)
	}
}

// ReportIntake records that a look could not read everything, or, with a nil error, that it
// could. Each reason is logged once.
func (f *FaultLog) ReportIntake(err error) {
	if err == nil {
		if f.end(taking) {
			f.log.Info().Msg("intake resumed")
		}
		return
	}
	fault := Fault{What: taking, Reason: err.Error(), Hint: hint(err)}
	if before := f.begin(taking, fault, 0); before.Reason != fault.Reason {
		f.log.Error().Str("reason", fault.Reason).Str("hint", fault.Hint).Msg(taking + "; trying again")
	}
}

// ReportFile records a task file that is not read, and why. A nil error says that the file is
// read again.
func (f *FaultLog) ReportFile(path string, err error) {
	key := passedOver + " " + path
	f.end(key)
	if err == nil {
		return
	}
	f.begin(key, Fault{What: passedOver, File: path, Reason: err.Error(), Hint: hint(err)}, 0)
	f.log.Warn().Str("file", path).Err(err).Str("hint", hint(err)).Msg(passedOver)
}
