package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailboxd/internal/host"
	"mailboxd/internal/service"
	"mailboxd/internal/term"
)

// service looks at the service, and whether it ends at logout.
func (d *doctor) service(ctx context.Context) {
	s, err := standing(ctx)
	switch {
	case err != nil:
		d.bad("service", "ls -l "+term.ShellWord(s.Unit), "%v", err)
	case !s.Installed:
		d.good("service", "not installed; mailboxd service install starts it at each login")
		d.good("linger", "without a service nothing ends at logout")
		return
	case s.Trouble != "":
		d.warn("service", "log in anew, and see: mailboxd service status", "%s", s.Trouble)
	case s.Active != "active":
		d.bad("service", "journalctl --user -u mailboxd -n 50", "it is installed and %s", s.Active)
	case !s.Enabled:
		d.warn("service", "systemctl --user enable "+service.Name, "it runs, and does not start at login")
	default:
		d.good("service", "it runs, and starts at login")
	}
	if s.Linger {
		d.good("linger", "the service goes on after logout")
	} else {
		d.warn("linger", "loginctl enable-linger", "the service ends when you log out, and starts only at login")
	}
}

// paths compares the PATH that the service has with the one of the login shell.
func (d *doctor) paths(ctx context.Context) {
	whose, seen := d.pathOfService()
	d.path = seen
	login, err := service.LoginPath(ctx)
	switch {
	case err != nil:
		d.path = cmp.Or(seen, os.Getenv("PATH"))
		d.warn("path", "echo $SHELL", "%v", err)
	case whose == "":
		d.path = login
		d.good("path", "no daemon and no service has one to compare with your login shell's")
	default:
		missing := slices.DeleteFunc(filepath.SplitList(login), func(dir string) bool {
			return slices.Contains(filepath.SplitList(seen), dir)
		})
		if len(missing) > 0 {
			d.warn("path", "mailboxd service install, or start mailboxd serve from a login shell",
				"%s does not look in %s, where your login shell does", whose, strings.Join(missing, ", "))
			return
		}
		d.good("path", "%s looks wherever your login shell does", whose)
	}
}

// pathOfService returns the PATH of the daemon that runs, or else the one that
// its unit would give it.
func (d *doctor) pathOfService() (whose, path string) {
	if environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", d.pid)); err == nil && d.pid > 0 {
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if value, ok := strings.CutPrefix(entry, "PATH="); ok {
				return fmt.Sprintf("the daemon, process %d,", d.pid), value
			}
		}
	}
	if text, err := service.Installed(); err == nil {
		return "the service", service.PathOf(text)
	}
	return "", ""
}

// What is little, and what is too little for work.
const (
	littleDisk, tooLittleDisk     = 1 << 30, 32 << 20 // bytes
	littleInodes, tooLittleInodes = 10_000, 500
)

func (d *doctor) disks(context.Context) {
	for _, of := range []struct{ name, path string }{{"root", d.root}, {"state", d.state}} {
		path, f := of.path, finding{Check: "disk", Subject: of.name, State: gradeOK}
		disk, err := host.DiskOf(existing(path))
		inodes := uint64(littleInodes)
		if disk.Counts {
			inodes = disk.Inodes
		}
		f.Finding = fmt.Sprintf("%d MiB are free", disk.Bytes>>20)
		switch {
		case err != nil:
			f.State, f.Finding, f.Mend = gradeBad, err.Error(), "ls -ld "+term.ShellWord(path)
		case disk.ReadOnly:
			f.State, f.Finding, f.Mend = gradeBad, "nobody may write to the disk of "+path, "findmnt -T "+term.ShellWord(path)
		case disk.Bytes < tooLittleDisk || inodes < tooLittleInodes:
			f.State, f.Mend = gradeBad, "mailboxd gc, and see: df -h "+term.ShellWord(path)
		case disk.Bytes < littleDisk || inodes < littleInodes:
			f.State, f.Mend = gradeWarn, "mailboxd gc --dry-run"
		}
		if f.State != gradeOK && inodes < littleInodes {
			f.Finding += fmt.Sprintf(" and %d files", inodes)
		}
		d.note(f)
	}
}

// existing is the path, or the nearest directory above that is there.
func existing(path string) string {
	for path != "/" {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

func (d *doctor) inotify() {
	watches, instances, err := host.Inotify()
	if err != nil {
		d.warn("inotify", "ls /proc/sys/fs/inotify", "%v; without it, tasks are seen at intake.rescan only", err)
		return
	}
	for _, of := range []struct {
		name string
		host.Quota
	}{{"max_user_watches", watches}, {"max_user_instances", instances}} {
		f := finding{Check: "inotify", Subject: of.name, State: gradeOK, Finding: fmt.Sprintf("%d of %d are used", of.Used, of.Max)}
		const needed = 8 // a daemon watches a few directories with one instance, and so does each send --wait
		switch free := of.Max - of.Used; {
		case free < needed:
			f.State = gradeBad
		case free < of.Max/10:
			f.State = gradeWarn
		}
		if f.State != gradeOK {
			f.Mend = fmt.Sprintf("sudo sysctl fs.inotify.%s=%d", of.name, max(2*of.Max, 512))
		}
		d.note(f)
	}
}

// born is before any build of this program.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (d *doctor) clock() {
	const mend = "sudo timedatectl set-ntp true"
	now := time.Now()
	written := newest(d.state)
	synchronised, err := host.ClockSynchronised()
	switch {
	case now.Before(born):
		d.bad("clock", mend, "it says %s, before there was a mailboxd", term.Stamp(now))
	case written.After(now.Add(time.Minute)):
		d.bad("clock", mend, "it says %s, and the ledger was written at %s: it was set back", term.Stamp(now), term.Stamp(written))
	case err != nil:
		d.warn("clock", mend, "%v", err)
	case !synchronised:
		d.warn("clock", mend, "it says %s, and nothing keeps it right", term.Stamp(now))
	default:
		d.good("clock", "it says %s, and is kept right", term.Stamp(now))
	}
}

// newest is when the ledger was last written to; zero when there is none.
func newest(state string) (at time.Time) {
	for _, name := range []string{"ledger.db", "ledger.db-wal", "ledger.db-redo1", "ledger.db-redo2"} {
		if info, err := os.Stat(filepath.Join(state, name)); state != "" && err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}
