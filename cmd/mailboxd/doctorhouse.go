package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mailboxd/internal/config"
	"mailboxd/internal/host"
	"mailboxd/internal/runner"
	"mailboxd/internal/term"
	"mailboxd/mailbox"
)

// configuration reports whether there is one to go on with.
func (d *doctor) configuration(g *globals) bool {
	d.config = cmp.Or(g.config, config.DefaultPath(), "$HOME/.config/mailboxd/config.yaml")
	cfg, err := g.load()
	if err == nil {
		d.cfg = cfg
		d.root, err = filepath.Abs(cfg.Root)
	}
	if err == nil {
		d.state, err = cfg.StateDirOf(d.root)
	}
	switch _, missing := os.Stat(d.config); {
	case err != nil:
		d.bad("config", "edit "+d.config, "%v", err)
		return false
	case errors.Is(missing, fs.ErrNotExist):
		d.warn("config", "mailboxd init", "there is no %s, so there are no agents", d.config)
	default:
		d.good("config", "%s", d.config)
	}
	return true
}

func (d *doctor) mailbox(context.Context) {
	warnings, err := mailbox.Examine(d.root)
	unfit, isUnfit := errors.AsType[*mailbox.UnfitError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.warn("root", "mailboxd serve", "%s is not there yet; serve makes it", d.root)
	case isUnfit:
		d.bad("root", unfit.Mend, "%s", unfit.Reason)
	case err != nil:
		d.bad("root", "ls -ld "+term.ShellWord(d.root), "%v", err)
	case len(warnings) > 0:
		for _, w := range warnings {
			d.warn("root", w.Mend, "%s", w.Reason)
		}
	default:
		d.good("root", "%s, which only you may write to", d.root)
	}
}

// cleaning looks whether somebody deletes what is old.
func (d *doctor) cleaning(context.Context) {
	mend := "name another root in " + d.config
	if proposed, err := privateRoot(); err == nil && proposed != d.root {
		mend += ", such as: root: " + proposed
	}
	root := d.root
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // where it is, and not how it is called
	}
	age := host.CleanedAfter(root)
	switch {
	case age != "":
		d.warn("tmp", mend, "systemd-tmpfiles deletes what is %s old in %s", age, root)
	case within(root, "/tmp"), within(root, os.TempDir()), within(root, "/var/tmp"):
		d.warn("tmp", mend, "%s is in a directory for temporary files", d.root)
	default:
		d.good("tmp", "nothing deletes what is old in %s", d.root)
	}
}

// within reports whether a path is a directory or in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (d *doctor) stateDirectory(context.Context) {
	if _, err := os.Stat(d.state); errors.Is(err, fs.ErrNotExist) {
		d.good("state", "%s is not there yet; serve makes it", d.state)
		return
	}
	state, err := mailbox.OpenState(d.state, d.root)
	unfit, isUnfit := errors.AsType[*mailbox.UnfitError](err)
	switch {
	case isUnfit:
		d.bad("state", unfit.Mend, "%s", unfit.Reason)
	case err != nil:
		d.bad("state", "name another state_dir in "+d.config, "%v", err)
	default:
		state.Close()
		d.good("state", "%s, which only you may look into", d.state)
	}
}

// daemon looks who serves the mailbox, and whether the state is somebody else's.
func (d *doctor) daemon(context.Context) {
	pid, served, err := mailbox.ServedBy(d.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.warn("daemon", "pgrep -a mailboxd", "it cannot be seen whether one runs: %v", err)
		return
	}
	other, claimed, _ := mailbox.ServedBy(d.state) // that it is not there is told elsewhere
	switch d.pid = pid; {
	case claimed && other != pid:
		d.bad("daemon", "name another state_dir in "+d.config, "process %d works with %s for another mailbox", other, d.state)
	case !served:
		d.warn("daemon", "mailboxd serve", "none serves %s", d.root)
	case pid == 0:
		d.good("daemon", "one that cannot be seen from here serves %s", d.root)
	case !sameProgram(pid):
		d.warn("daemon", fmt.Sprintf("mailboxd service install, or end process %d and start mailboxd serve; agents go on", pid),
			"process %d serves %s, and is another build than this one", pid, d.root)
	default:
		d.good("daemon", "process %d serves %s", pid, d.root)
	}
}

// sameProgram reports whether a process runs the file that we are.
func sameProgram(pid int) bool {
	theirs, err1 := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	ours, err2 := os.Stat("/proc/self/exe")
	return err1 == nil && err2 == nil && os.SameFile(theirs, ours)
}

func (d *doctor) keeper(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	builds, err := runner.Living(ctx, filepath.Join(d.state, mailbox.KeepersDir))
	if err != nil {
		d.bad("keeper", "ls -l "+term.ShellWord(d.state), "%v", err)
		return
	}
	ours, err := buildID()
	others := len(builds)
	if err == nil && slices.Contains(builds, ours) {
		others--
	}
	switch {
	case len(builds) == 0:
		d.good("keeper", "none runs; the first agent starts one")
	case others == 0:
		d.good("keeper", "one runs, of this build")
	case others == len(builds):
		d.good("keeper", "%d run, of another build, until their agents are done", others)
	default:
		d.good("keeper", "one runs, of this build, and %d of another until their agents are done", others)
	}
}
