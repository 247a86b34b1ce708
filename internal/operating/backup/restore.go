package backup

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

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/worktree"
	"mailboxd/mailbox"
)

// A Restoration says what came of a restore.
type Restoration struct {
	Backup   Record        `json:"backup"`
	Root     string        `json:"root"`
	State    string        `json:"state"`
	Verified bool          `json:"verified"`           // every file is as it was backed up; false: the backup has no digests
	Kept     bool          `json:"mailbox_kept"`       // the mailbox was there and stays as it is
	Replaced string        `json:"replaced,omitempty"` // where the state that was there is now
	Held     []envelope.ID `json:"held"`               // as recovered
	Waiting  []envelope.ID `json:"waiting"`            // answers that still wait for an approval or an overseer
	Later    []Later       `json:"later"`              // the first lines after the backup
	LaterAll int           `json:"later_count"`
}

// Later is a line that came after the backup.
type Later struct {
	Task   envelope.ID `json:"task,omitzero"` // "": the line has no readable id
	File   string      `json:"file"`
	Offset int64       `json:"offset"`
}

// maxLater limits how many lines after the backup are named.
const maxLater = 100

// Options say how to restore.
type Options struct {
	Replace bool // rename a state directory that is there
	Reading envelope.Reading
	MaxLine int64
}

// Restore makes a mailbox and its state from a backup. A mailbox that is there stays as it
// is. The state appears whole or not at all: every open task in it is held. No daemon may
// serve the mailbox.
func Restore(ctx context.Context, dir string, at Location, opts Options) (r Restoration, err error) {
	if dir, err = mailbox.Resolve(dir); err != nil {
		return r, fmt.Errorf("restore: %w", err)
	}
	r = Restoration{Root: at.Root, State: at.State, Held: []envelope.ID{}, Waiting: []envelope.ID{}, Later: []Later{}}
	if r.Backup, err = ReadRecord(dir); err != nil {
		return r, fmt.Errorf("restore: %w", err)
	}
	if err = r.Backup.verify(ctx, dir); err != nil {
		return r, fmt.Errorf("restore %s: %w", dir, err)
	}
	r.Verified = r.Backup.Digests != ""
	box, err := mailbox.Open(at.Root)
	if err != nil {
		return r, fmt.Errorf("restore: %w", err)
	}
	defer box.Close()
	if err = lock(box); err == nil {
		err = checkState(ctx, at.State, opts.Replace)
	}
	if err == nil {
		err = r.restore(ctx, dir, box, opts)
	}
	if err != nil {
		return r, fmt.Errorf("restore %s: %w", dir, err)
	}
	return r, nil
}

// lock locks a mailbox that no daemon may serve meanwhile.
func lock(box *mailbox.Box) error {
	err := box.Lock()
	if served, ok := errors.AsType[*mailbox.LockedError](err); ok {
		return fmt.Errorf("%w; stop it first", served)
	}
	return err
}

// checkState refuses a state directory that is there, unless it may be replaced, and one
// whose agents still run.
func checkState(ctx context.Context, state string, replace bool) error {
	if err := checkKeepers(ctx, state); err != nil {
		return err
	}
	err := mustBeEmpty(state)
	if err != nil && replace {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the state directory %s is there; --replace renames it", state)
	}
	return nil
}

// checkKeepers refuses a state directory whose agents run.
func checkKeepers(ctx context.Context, state string) error {
	builds, err := runner.LiveBuilds(ctx, filepath.Join(state, keepersName))
	if err == nil && len(builds) > 0 {
		err = fmt.Errorf("agents of %s still run; start the daemon, wait with mailboxd drain, and stop it", state)
	}
	return err
}

// restore makes the state beside its place, and renames it in the end.
func (r *Restoration) restore(ctx context.Context, dir string, box *mailbox.Box, opts Options) error {
	aside := r.State + ".restoring"
	if err := errors.Join(dirtree.Remove(aside), os.MkdirAll(aside, 0o700)); err != nil {
		return err
	}
	if _, err := dirtree.Copy(ctx, filepath.Join(dir, stateName), aside, dirtree.CopyOptions{}); err != nil {
		return err
	}
	if err := r.copyMailbox(ctx, dir, box); err != nil {
		return err
	}
	if err := r.prepare(ctx, aside, box, opts); err != nil {
		return err
	}
	if err := r.detachClones(aside); err != nil {
		return err
	}
	if err := errors.Join(syncAll(aside), syncAll(r.Root)); err != nil {
		return err
	}
	return r.put(aside)
}

// copyMailbox copies the mailbox unless there is one: task files were appended to since the
// backup, and results were read.
func (r *Restoration) copyMailbox(ctx context.Context, dir string, box *mailbox.Box) error {
	switch err := mustBeEmpty(box.TasksDir()); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.Kept = true
		return nil
	}
	from := filepath.Join(dir, mailboxName)
	others := func(name string) bool { return name == "tasks" }
	if _, err := dirtree.Copy(ctx, from, r.Root, dirtree.CopyOptions{Skip: others, Aside: true}); err != nil {
		return err
	}
	aside := filepath.Join(r.Root, ".mailboxd", "tmp", "tasks") // a restore that is cut short leaves no half of tasks/
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	tasks := filepath.Join(from, "tasks")
	if _, err := dirtree.Copy(ctx, tasks, aside, dirtree.CopyOptions{}); err != nil {
		return err
	}
	info, err := os.Stat(tasks)
	if err == nil {
		err = os.Chmod(aside, info.Mode().Perm()|0o700)
	}
	if err == nil {
		err = renameDirectory(aside, box.TasksDir())
	}
	return err
}

// prepare makes the ledger of a restored state: its tasks are held, and its reading positions
// are those of the files in the mailbox.
func (r *Restoration) prepare(ctx context.Context, aside string, box *mailbox.Box, opts Options) (err error) {
	state, err := mailbox.OpenState(aside, r.Root)
	if err != nil {
		return err
	}
	defer state.Close()
	if err := state.Claim(r.Root); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(aside, keepersName), 0o700); err != nil {
		return err
	}
	l, opened, err := ledger.Open(state.LedgerPath())
	if err != nil {
		return err
	}
	if opened.Created {
		return errors.Join(fmt.Errorf("the ledger of the backup can't be read: %w", cmp.Or(opened.Cause, ledger.ErrMissing)), l.Close())
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	all, err := retie(ctx, l, box, state)
	if err != nil {
		return err
	}
	if err := r.findLater(box, all, opts); err != nil {
		return err
	}
	held, err := dispatch.HoldRestored(ctx, l, r.Backup.Made)
	for _, t := range held {
		if slices.Contains(t.Reasons, task.Recovered) {
			r.Held = append(r.Held, t.ID)
		} else {
			r.Waiting = append(r.Waiting, t.ID)
		}
	}
	return err
}

// findLater names the lines after the reading positions.
func (r *Restoration) findLater(box *mailbox.Box, all []mailbox.Cursor, opts Options) error {
	lines, count, err := box.Unread(all, mailbox.TailOptions{MaxLine: opts.MaxLine}, maxLater)
	if err != nil {
		return err
	}
	r.LaterAll = count
	for _, l := range lines {
		later := Later{File: l.File, Offset: l.Offset}
		for _, p := range dialect.Read(l.Raw, opts.Reading) {
			later.Task = p.Message.Request.ID
			if later.Task != "" {
				break
			}
		}
		if later.Task == "" {
			later.Task = envelope.Salvage(l.Raw)
		}
		r.Later = append(r.Later, later)
	}
	return nil
}

// detachClones marks the clones of repositories as removed that are not at their place in the
// restored mailbox: they may belong to a mailbox that still uses them. Their patches stay.
func (r *Restoration) detachClones(aside string) error {
	if r.State == r.Backup.State {
		return nil
	}
	s := worktree.Store{Records: worktree.RecordsIn(aside)}
	clones, err := s.Clones()
	for _, c := range clones {
		if c.Removed.IsZero() {
			c.Removed = time.Now()
			err = errors.Join(err, s.Update(c))
		}
	}
	return err
}

// put renames the restored state to its place.
func (r *Restoration) put(aside string) error {
	if err := mustBeEmpty(r.State); err != nil {
		r.Replaced = r.State + ".replaced-" + time.Now().UTC().Format("20060102T150405Z")
		if err := os.Rename(r.State, r.Replaced); err != nil {
			return err
		}
	}
	if err := renameDirectory(aside, r.State); err != nil {
		return err
	}
	return syncAll(filepath.Dir(r.State))
}
