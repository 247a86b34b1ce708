package doctor

import (
	"fmt"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/host"
)

// A Runner is a runner of this machine, which works for a daemon elsewhere.
type Runner struct {
	File    string // its configuration
	Err     error  // why that can't be used
	State   string // its state directory
	MinFree int64  // bytes of its disk below which it takes no tasks
	NoJobs  string // why its daemon gives it no tasks; "": it gives some
}

// ownRunner checks the runner of this machine. What the daemon knows of its runners is another check.
func (d *checker) ownRunner() {
	r := d.Runner
	if r == nil {
		return
	}
	f := Finding{Check: "runner.yaml", State: OK, Finding: term.OneLine(r.File) + " can be used"}
	disk, err := host.DiskOf(existing(r.State))
	switch {
	case r.Err != nil:
		f.State, f.Finding, f.Hint = Bad, term.OneLine(r.Err.Error()), "correct "+term.ShellWord(r.File)+", then start mailboxd runner again"
	case err != nil:
		f.State, f.Finding, f.Hint = Bad, term.OneLine(err.Error()), "ls -ld "+term.ShellWord(r.State)
	case int64(disk.Bytes) < r.MinFree:
		f.State, f.Hint = Bad, "make room, or set min_free_bytes: df -h "+term.ShellWord(existing(r.State))
		f.Finding = fmt.Sprintf("%d MiB are free for its state, and with less than %d MiB it takes no tasks", disk.Bytes>>20, r.MinFree>>20)
	case r.NoJobs != "":
		f.State, f.Hint = Bad, "mailboxd runners, at the machine of the daemon, says what to do"
		f.Finding = "its daemon gives it no tasks: " + term.OneLine(r.NoJobs)
	}
	d.note(f)
}
