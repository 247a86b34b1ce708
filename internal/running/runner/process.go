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

	"mailboxd/internal/testtools/fault"
)

// A Process identifies a process for good; a PID alone is reused. The zero value is none.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
	Boot  string `json:"boot"`  // of this boot
}

// Meta is the content of meta.json: the command and the process of a run.
type Meta struct {
	Argv      []string  `json:"argv"` // with the resolved path of the command
	Cwd       string    `json:"cwd"`
	Process   Process   `json:"process"`
	Mark      uint64    `json:"mark,omitempty"` // inherited by all processes of the run
	StartedAt time.Time `json:"started_at"`
}

// ReadMeta reads meta.json in dir. It returns false if there is none.
func ReadMeta(dir string) (Meta, bool, error) {
	var m Meta
	ok, err := readRecord(dir, MetaFile, &m)
	return m, ok, err
}

// Alive reports whether the process exists: same boot, same start time, not a zombie.
func Alive(p Process) bool {
	if p.PID <= 0 || p.Boot != Boot() {
		return false
	}
	e, ok := stat(p.PID)
	return ok && e.Start == p.Start && e.running()
}

// ProcessOf returns the process with a PID. It is zero if there is none, or it has ended.
func ProcessOf(pid int) Process {
	e, ok := stat(pid)
	if !ok || !e.running() {
		return Process{}
	}
	return Process{PID: pid, Start: e.Start, Boot: Boot()}
}

// identify returns the Process of an unreaped child that was started between two readings
// of ticks. If both are equal, they are its start time. Reading /proc takes 20 us.
func identify(pid int, before, after uint64) Process {
	p := Process{PID: pid, Boot: Boot(), Start: before}
	if before == 0 || before != after {
		e, _ := stat(pid)
		p.Start = e.Start
	}
	return p
}

// ticks returns the time since boot as /proc counts it, in hundredths of a second (USER_HZ,
// the same on every supported architecture); 0 if unknown.
func ticks() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Nano()) / uint64(10*time.Millisecond)
}

// Boot returns the id of this boot, as in Process.Boot; "" if unknown.
func Boot() string { return fault.Boot(boot()) }

// boot returns the id of this boot; "" if unknown.
var boot = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// An entry is a process in /proc.
type entry struct {
	PID, Parent    int
	Command        string
	State          byte
	Group, Session int
	Start          uint64
}

// running reports whether the process isn't a zombie.
func (e entry) running() bool { return e.State != 'Z' && e.State != 'X' }

// inGroup reports whether the process belongs to a session or a process group.
func (e entry) inGroup(number int) bool { return e.Session == number || e.Group == number }

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
	// The name may contain anything, so fields are counted from the last ")": state is
	// field 3, parent 4, group 5, session 6, start time 22.
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

// environ returns a variable of the environment with which a process was started.
func environ(pid int, variable string) (string, bool) {
	env, err := readProc("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "", false // gone, or another user's
	}
	for entry := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(entry, variable+"="); ok {
			return value, true
		}
	}
	return "", false
}

// processes lists all visible running processes.
func processes() []entry {
	return only(entries(), entry.running)
}

// entries also lists zombies.
func entries() []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // a partial list is enough
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
