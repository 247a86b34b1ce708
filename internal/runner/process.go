package runner

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

// A Process names one process for good: a number alone is given to another
// one, sooner or later. The zero value names none.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
	Boot  string `json:"boot"`  // the boot it belongs to
}

// Meta is what meta.json holds: what was started, and as which process.
type Meta struct {
	Argv      []string  `json:"argv"` // the command resolved to a path
	Cwd       string    `json:"cwd"`
	Process   Process   `json:"process"`
	Mark      uint64    `json:"mark,omitempty"` // what all processes of the run inherit
	StartedAt time.Time `json:"started_at"`
}

// ReadMeta reads what was started in dir. It reports false when there is no
// record of a start.
func ReadMeta(dir string) (Meta, bool, error) {
	var m Meta
	ok, err := readRecord(dir, MetaFile, &m)
	return m, ok, err
}

// Alive reports whether the process exists: this boot's, with this start time,
// and not merely waiting to be reaped.
func Alive(p Process) bool {
	if p.PID <= 0 || p.Boot != Boot() {
		return false
	}
	e, ok := stat(p.PID)
	return ok && e.Start == p.Start && e.running()
}

// ProcessOf names the process that has a number now. It is zero when there is
// none, or when it has ended.
func ProcessOf(pid int) Process {
	e, ok := stat(pid)
	if !ok || !e.running() {
		return Process{}
	}
	return Process{PID: pid, Start: e.Start, Boot: Boot()}
}

// identify names a child of ours that is not reaped, and that was born between
// two readings of the clock of ticks. When that showed the same, /proc does too,
// which takes 20 us to ask.
func identify(pid int, before, after uint64) Process {
	p := Process{PID: pid, Boot: Boot(), Start: before}
	if before == 0 || before != after {
		e, _ := stat(pid)
		p.Start = e.Start
	}
	return p
}

// ticks is the time since boot as /proc counts it, in hundredths of a second
// (USER_HZ, which is the same on every architecture of ours); 0 when it is not
// known.
func ticks() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Nano()) / uint64(10*time.Millisecond)
}

// Boot names the time since the machine was started, as Process.Boot does; ""
// when it has no name.
func Boot() string { return fault.Boot(boot()) }

// boot names the time since the machine was started; "" when it has no name.
var boot = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// An entry is one process as /proc shows it.
type entry struct {
	PID, Parent    int
	Command        string
	State          byte
	Group, Session int
	Start          uint64
}

// running reports whether it is more than a name that waits to be reaped.
func (e entry) running() bool { return e.State != 'Z' && e.State != 'X' }

// in reports whether it belongs to the session, or the group, of that number.
func (e entry) in(number int) bool { return e.Session == number || e.Group == number }

// stat reads /proc/<pid>/stat (proc_pid_stat(5)).
func stat(pid int) (entry, bool) {
	line, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, false
	}
	open, shut := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || shut < open {
		return entry{}, false
	}
	e := entry{PID: pid, Command: string(line[open+1 : shut])}
	// The name may hold anything, so fields are counted from its last ")":
	// state is field 3, parent 4, group 5, session 6, start time 22.
	n := 3
	for field := range bytes.FieldsSeq(line[shut+1:]) {
		switch n {
		case 3:
			e.State = field[0]
		case 4:
			e.Parent, _ = strconv.Atoi(string(field))
		case 5:
			e.Group, _ = strconv.Atoi(string(field))
		case 6:
			e.Session, _ = strconv.Atoi(string(field))
		case 22:
			e.Start, err = strconv.ParseUint(string(field), 10, 64)
			return e, err == nil
		}
		n++
	}
	return entry{}, false
}

// environ returns the variable's value with which the process was started.
func environ(pid int, variable string) (string, bool) {
	env, err := readProc("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false // gone, or somebody else's
	}
	for entry := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(entry, variable+"="); ok {
			return value, true
		}
	}
	return "", false
}

// processes lists what runs on this machine, as far as we may see it.
func processes() []entry {
	return only(entries(), entry.running)
}

// entries lists also what waits to be reaped.
func entries() []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what can be read is what there is
	var all []entry
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if e, ok := stat(pid); ok {
			all = append(all, e)
		}
	}
	return all
}

func only(all []entry, keep func(entry) bool) []entry {
	return slices.DeleteFunc(all, func(e entry) bool { return !keep(e) })
}
