package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// Move moves a mailbox and its state to another place, where nothing may be. The state then
// belongs to the mailbox at its new path, and reading goes on where it stopped. No daemon may
// serve the mailbox, and no agent of it may run. A Move that was cut short is completed by
// another one.
func Move(ctx context.Context, from, to Location) error {
	if err := checkMove(from, to); err != nil {
		return fmt.Errorf("move %s: %w", from.Root, err)
	}
	old, err := mailbox.Open(existing(from.Root, to.Root))
	if err != nil {
		return fmt.Errorf("move %s: %w", from.Root, err)
	}
	defer old.Close() // its lock moves with the directory
	if err = lock(old); err == nil {
		err = checkIdle(ctx, Location{State: existing(from.State, to.State)})
	}
	if err == nil {
		err = move(ctx, from, to)
	}
	if err != nil {
		return fmt.Errorf("move %s: %w", from.Root, err)
	}
	return nil
}

// existing returns the first path if it exists, and the second one otherwise.
func existing(first, second string) string {
	if _, err := os.Lstat(first); err == nil {
		return first
	}
	return second
}

// checkMove refuses a move that would mix mailboxes.
func checkMove(from, to Location) error {
	if from == to {
		return fmt.Errorf("it is there already, with its state in %s", from.State)
	}
	if inside(to.State, to.Root) {
		return fmt.Errorf("the state directory %s would be inside the mailbox %s; name a directory outside", to.State, to.Root)
	}
	for _, p := range [][2]string{{from.Root, to.Root}, {from.State, to.State}} {
		if p[0] != p[1] && inside(p[1], p[0]) {
			return fmt.Errorf("%s is inside %s; name a directory outside", p[1], p[0])
		}
		if err := checkStep(p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// checkIdle refuses a move that running agents would notice, and one of a ledger that the
// daemon has to repair or to bring forward first.
func checkIdle(ctx context.Context, at Location) error {
	if err := checkKeepers(ctx, at.State); err != nil {
		return err
	}
	l, err := ledger.OpenReader(at.ledger())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no daemon has served the mailbox yet
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// checkStep checks that a directory can be moved, or was moved before.
func checkStep(from, to string) error {
	if from == to {
		return nil
	}
	_, missing := os.Lstat(from)
	err := mustBeEmpty(to)
	switch {
	case missing == nil:
		return err
	case !errors.Is(missing, fs.ErrNotExist):
		return missing
	case err == nil: // nothing at either path
		return fmt.Errorf("%s does not exist", from)
	}
	return nil
}

// move copies what is on another file system first, so that the renames follow each other.
func move(ctx context.Context, from, to Location) error {
	copied := [2]bool{}
	steps := [2][2]string{{from.Root, to.Root}, {from.State, to.State}}
	for i, step := range steps {
		var err error
		if copied[i], err = prepareStep(ctx, step[0], step[1]); err != nil {
			return err
		}
	}
	for i, step := range steps {
		source := step[0]
		if copied[i] {
			source = step[1] + ".moving"
		}
		if err := rename(source, step[1]); err != nil {
			return err
		}
	}
	if err := adopt(ctx, to); err != nil {
		return err
	}
	for i, step := range steps {
		if copied[i] {
			if err := os.RemoveAll(step[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepareStep copies a directory beside its new path if it can't be renamed.
func prepareStep(ctx context.Context, from, to string) (copied bool, err error) {
	if _, missing := os.Lstat(from); from == to || missing != nil {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, err
	}
	var here, there unix.Stat_t
	if err := errors.Join(unix.Stat(from, &here), unix.Stat(filepath.Dir(to), &there)); err != nil || here.Dev == there.Dev {
		return false, err
	}
	aside := to + ".moving"
	if err := errors.Join(os.RemoveAll(aside), os.Mkdir(aside, 0o700)); err != nil {
		return false, err
	}
	omitted, err := copyTree(ctx, from, aside, nil, false)
	if err == nil && len(omitted) > 0 {
		err = fmt.Errorf("%s can't be copied to another file system", filepath.Join(from, omitted[0]))
	}
	if err == nil {
		err = os.Chmod(aside, os.FileMode(here.Mode).Perm())
	}
	if err == nil {
		err = syncAll(aside)
	}
	return true, err
}

// renameDirectory renames a directory. An empty directory in its place goes.
func renameDirectory(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// rename renames a directory, unless that was done before.
func rename(from, to string) error {
	if _, err := os.Lstat(from); from == to || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := renameDirectory(from, to); err != nil {
		return err
	}
	return errors.Join(syncAll(filepath.Dir(to)), syncAll(filepath.Dir(from)))
}

// adopt has a state belong to the mailbox at its new path, and its reading positions to the
// files there.
func adopt(ctx context.Context, at Location) (err error) {
	if err := os.Remove(filepath.Join(at.State, "root")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	state, err := mailbox.OpenState(at.State, at.Root)
	if err != nil {
		return err
	}
	defer state.Close()
	if err := state.Claim(at.Root); err != nil {
		return err
	}
	box, err := mailbox.Open(at.Root)
	if err != nil {
		return err
	}
	defer box.Close()
	if _, err := os.Stat(state.LedgerPath()); errors.Is(err, fs.ErrNotExist) {
		return nil // no daemon has served it yet
	}
	l, _, err := ledger.Open(state.LedgerPath())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	_, err = retie(ctx, l, box)
	return err
}
