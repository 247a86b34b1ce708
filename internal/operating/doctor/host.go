package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/service"
	"mailboxd/internal/operating/setup"
	"mailboxd/internal/running/host"
)

// user checks who mailboxd runs as.
func (d *checker) user(context.Context) {
	if os.Getuid() == 0 {
		d.warn("user", "run mailboxd as an ordinary user", "mailboxd runs as root, and so do agents without a sandbox; "+
			"in one, an agent of root can't make a sandbox with a /proc of its own")
		return
	}
	d.good("user", "an ordinary user")
}

// service checks the service, and whether it ends at logout.
func (d *checker) service(ctx context.Context) {
	s, err := setup.ReadServiceStatus(ctx)
	switch {
	case err != nil:
		d.bad("service", "ls -l "+term.ShellWord(s.Unit), "%v", err)
	case !s.Installed:
		d.good("service", "not installed; mailboxd service install starts it at each login")
		d.good("linger", "not needed: no service is installed")
		return
	case s.Trouble != "":
		d.warn("service", "log in again, then: mailboxd service status", "%s", s.Trouble)
	case s.Active != "active":
		d.bad("service", "journalctl --user -u mailboxd -n 50", "installed, and %s", s.Active)
	case !s.Enabled:
		d.warn("service", "systemctl --user enable "+service.Name, "running, but not started at login")
	default:
		d.good("service", "running, and started at login")
	}
	if s.Linger {
		d.good("linger", "the service keeps running after logout")
	} else {
		d.warn("linger", "loginctl enable-linger", "the service ends when you log out, and starts only at login")
	}
}

// paths compares the PATH of the daemon or the service with that of the login shell.
func (d *checker) paths(ctx context.Context) {
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
				"the PATH of %s lacks %s of your login shell", whose, strings.Join(missing, ", "))
			return
		}
		d.good("path", "the PATH of %s has every directory of your login shell", whose)
	}
}

// pathOfService returns the PATH of the running daemon, or else that of the unit.
func (d *checker) pathOfService() (whose, path string) {
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

// The limits of free disk space: for a warning, and for work.
const (
	lowDisk, minDisk     = 1 << 30, 32 << 20 // bytes
	lowInodes, minInodes = 10_000, 500
)

func (d *checker) disks(context.Context) {
	for _, of := range []struct{ name, path string }{{"root", d.Root}, {"state", d.State}} {
		path, f := of.path, Finding{Check: "disk", Subject: of.name, State: OK}
		disk, err := host.DiskOf(existing(path))
		inodes := uint64(lowInodes)
		if disk.Counts {
			inodes = disk.Inodes
		}
		f.Finding = fmt.Sprintf("%d MiB are free", disk.Bytes>>20)
		switch {
		case err != nil:
			f.State, f.Finding, f.Hint = Bad, err.Error(), "ls -ld "+term.ShellWord(path)
		case disk.ReadOnly:
			f.State, f.Finding, f.Hint = Bad, "nobody may write to the disk of "+path, "findmnt -T "+term.ShellWord(path)
		case disk.Bytes < minDisk || inodes < minInodes:
			f.State, f.Hint = Bad, "mailboxd gc, and see: df -h "+term.ShellWord(path)
		case disk.Bytes < lowDisk || inodes < lowInodes:
			f.State, f.Hint = Warn, "mailboxd gc --dry-run"
		}
		if f.State != OK && inodes < lowInodes {
			f.Finding += fmt.Sprintf(" and %d files", inodes)
		}
		d.note(f)
	}
}

// existing returns the path, or its nearest directory that exists.
func existing(path string) string {
	for path != "/" {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

func (d *checker) inotify() {
	watches, instances, err := host.Inotify()
	if err != nil {
		d.warn("inotify", "ls /proc/sys/fs/inotify", "%v; without it, tasks are seen at intake.rescan only", err)
		return
	}
	for _, of := range []struct {
		name string
		host.Quota
	}{{"max_user_watches", watches}, {"max_user_instances", instances}} {
		f := Finding{Check: "inotify", Subject: of.name, State: OK, Finding: fmt.Sprintf("%d of %d are used", of.Used, of.Max)}
		const needed = 8 // a daemon watches a few directories with one instance, and so does each send --wait
		switch free := of.Max - of.Used; {
		case free < needed:
			f.State = Bad
		case free < of.Max/10:
			f.State = Warn
		}
		if f.State != OK {
			f.Hint = fmt.Sprintf("sudo sysctl fs.inotify.%s=%d", of.name, max(2*of.Max, 512))
		}
		d.note(f)
	}
}

// firstBuild is earlier than any build of this program.
var firstBuild = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (d *checker) clock() {
	const fix = "sudo timedatectl set-ntp true"
	now := time.Now()
	written := lastWrite(d.State)
	synchronised, err := host.ClockSynchronised()
	switch {
	case now.Before(firstBuild):
		d.bad("clock", fix, "the clock says %s, before mailboxd existed", term.Stamp(now))
	case written.After(now.Add(time.Minute)):
		d.bad("clock", fix, "the clock says %s, but the ledger was written at %s: the clock was set back", term.Stamp(now), term.Stamp(written))
	case err != nil:
		d.warn("clock", fix, "%v", err)
	case !synchronised:
		d.warn("clock", fix, "the clock (%s) is not synchronised by NTP", term.Stamp(now))
	default:
		d.good("clock", "it says %s, and is kept right", term.Stamp(now))
	}
}

// lastWrite is when the ledger was last written; zero without a ledger.
func lastWrite(state string) (at time.Time) {
	for _, name := range []string{"ledger.db", "ledger.db-wal", "ledger.db-last"} {
		if info, err := os.Stat(filepath.Join(state, name)); state != "" && err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}
