package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/setup"
	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/mailbox"
)

// each returns the errors that an error joins, or the error itself.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// configuration reports whether the configuration can be used.
func (d *checker) configuration() bool {
	for _, warning := range d.Warnings {
		d.warn("environment", "unset the variable, or correct its name", "%s", warning)
	}
	for _, key := range d.Renamed {
		d.warn("config", "edit "+d.Config, "%s", key)
	}
	switch _, missing := os.Stat(d.Config); {
	case d.Err != nil:
		for _, err := range each(d.Err) {
			d.bad("config", "edit "+d.Config, "%v", err)
		}
		return false
	case errors.Is(missing, fs.ErrNotExist):
		d.warn("config", "mailboxd init", "%s does not exist, so there are no agents", d.Config)
	default:
		d.good("config", "%s", d.Config)
	}
	return true
}

func (d *checker) mailbox(context.Context) {
	warnings, err := mailbox.Examine(d.Root)
	unfit, isUnfit := errors.AsType[*mailbox.UnfitError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.warn("root", "mailboxd serve", "%s is not there yet; serve makes it", d.Root)
	case isUnfit:
		d.bad("root", unfit.Hint, "%s", unfit.Reason)
	case err != nil:
		d.bad("root", "ls -ld "+term.ShellWord(d.Root), "%v", err)
	case len(warnings) > 0:
		for _, w := range warnings {
			d.warn("root", w.Hint, "%s", w.Reason)
		}
	default:
		d.good("root", "%s, which only you may write to", d.Root)
	}
}

// cleaning checks whether old files in the mailbox are deleted by other programs.
func (d *checker) cleaning(context.Context) {
	fix := "name another root in " + d.Config
	if proposed, err := setup.PrivateRoot(); err == nil && proposed != d.Root {
		fix += ", such as: root: " + proposed
	}
	root := d.Root
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // where it is, and not how it is called
	}
	age := host.CleanedAfter(root)
	switch {
	case age != "":
		d.warn("tmp", fix, "systemd-tmpfiles deletes what is %s old in %s", age, root)
	case within(root, "/tmp"), within(root, os.TempDir()), within(root, "/var/tmp"):
		d.warn("tmp", fix, "%s is in a directory for temporary files", d.Root)
	default:
		d.good("tmp", "nothing deletes what is old in %s", d.Root)
	}
}

// within reports whether a path is a directory or in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (d *checker) stateDirectory(context.Context) {
	if _, err := os.Stat(d.State); errors.Is(err, fs.ErrNotExist) {
		d.good("state", "%s is not there yet; serve makes it", d.State)
		return
	}
	state, err := mailbox.OpenState(d.State, d.Root)
	unfit, isUnfit := errors.AsType[*mailbox.UnfitError](err)
	switch {
	case isUnfit:
		d.bad("state", unfit.Hint, "%s", unfit.Reason)
	case err != nil:
		d.bad("state", "name another state_dir in "+d.Config, "%v", err)
	default:
		state.Close()
		d.good("state", "%s, which only you may look into", d.State)
	}
}

// left lists what gc could not remove.
func (d *checker) left(context.Context) {
	if _, err := os.Stat(d.State); err != nil {
		return // or OpenState would make it
	}
	state, err := mailbox.OpenState(d.State, d.Root)
	if err != nil {
		return // stateDirectory says it
	}
	list, err := state.Left()
	if err = errors.Join(err, state.Close()); err != nil {
		d.warn("retention", "mailboxd gc", "%v", err)
		return
	}
	for _, l := range list[:min(len(list), mostLeft)] {
		d.note(Finding{
			Check: "retention", Subject: l.Path, State: Warn, Finding: "gc could not remove it: " + l.Cause,
			Hint: "remove it, perhaps as another user: sudo rm -r " + term.ShellWord(l.Path),
		})
	}
	switch more := len(list) - mostLeft; {
	case more > 0:
		d.warn("retention", "mailboxd gc --json", "gc could not remove %d more", more)
	case len(list) == 0:
		d.good("retention", "gc left nothing that is too old")
	}
}

// mostLeft limits how many findings are about what gc could not remove.
const mostLeft = 10

// daemon checks which process serves the mailbox, and that no other one uses the state.
func (d *checker) daemon(context.Context) {
	pid, served, err := mailbox.ServedBy(d.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.warn("daemon", "pgrep -a mailboxd", "it cannot be seen whether one runs: %v", err)
		return
	}
	other, claimed, _ := mailbox.ServedBy(d.State) // that it is not there is told elsewhere
	switch d.pid = pid; {
	case claimed && other != pid:
		d.bad("daemon", "name another state_dir in "+d.Config, "process %d uses %s for another mailbox", other, d.State)
	case !served:
		d.warn("daemon", "mailboxd serve", "no daemon serves %s", d.Root)
	case pid == 0:
		d.good("daemon", "one that cannot be seen from here serves %s", d.Root)
	case !sameProgram(pid):
		d.warn("daemon", fmt.Sprintf("mailboxd service install, or end process %d and start mailboxd serve; agents go on", pid),
			"process %d serves %s, and is another build than this one", pid, d.Root)
	default:
		d.good("daemon", "process %d serves %s", pid, d.Root)
	}
}

// sameProgram reports whether a process runs the file of this program.
func sameProgram(pid int) bool {
	theirs, err1 := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	ours, err2 := os.Stat("/proc/self/exe")
	return err1 == nil && err2 == nil && os.SameFile(theirs, ours)
}

func (d *checker) keeper(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	builds, err := runner.LiveBuilds(ctx, filepath.Join(d.State, mailbox.KeepersDir))
	if err != nil {
		d.bad("keeper", "ls -l "+term.ShellWord(d.State), "%v", err)
		return
	}
	others := len(builds)
	if slices.Contains(builds, d.Build) {
		others--
	}
	switch {
	case len(builds) == 0:
		d.good("keeper", "not running; the first agent starts it")
	case others == 0:
		d.good("keeper", "one of this build is running")
	case others == len(builds):
		d.good("keeper", "%d of an older build still hosting agents", others)
	default:
		d.good("keeper", "one of this build is running; %d of an older build still hosting agents", others)
	}
}
