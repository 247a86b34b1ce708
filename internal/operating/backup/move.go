package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// A LeftError says that a move is complete, but that files are left at the old place, where no
// daemon starts any more.
type LeftError struct{ Cause error }

func (e *LeftError) Error() string {
	return fmt.Sprintf("it was moved, but the old place could not be removed: %v; remove that, and repeat the command", e.Cause)
}

func (e *LeftError) Unwrap() error { return e.Cause }

// Move moves a mailbox and its state to another place, where nothing may be. The state then
// belongs to the mailbox at its new path, and reading goes on where it stopped. No daemon may
// serve the mailbox, and no agent of it may run. A Move that was cut short is completed by
// another one. The error wraps a *LeftError if only the old place could not be removed.
func Move(ctx context.Context, from, to Location) error {
	err := checkMove(from, to)
	root, state := step{from.Root, to.Root}, step{from.State, to.State}
	adopted := root.adopted() || state.adopted()
	if err == nil && !(adopted && mailbox.IsMoved(from.Root)) {
		var old *mailbox.Box
		if old, err = mailbox.Open(existing(from.Root, to.Root)); err == nil {
			defer old.Close() // its lock moves with the directory
			err = lock(old)
		}
	}
	if err == nil && !adopted {
		err = checkIdle(ctx, Location{State: existing(from.State, to.State)})
	}
	if err == nil && !adopted {
		err = move(ctx, root, state, to)
	}
	if err == nil {
		err = removeOld(root, state)
	}
	if err != nil {
		return fmt.Errorf("move %s: %w", from.Root, err)
	}
	return nil
}

// existing returns the first path if it exists, and the second one otherwise.
func existing(first, second string) string {
	if exists(first) {
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
		if err := (step{p[0], p[1]}).check(); err != nil {
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
	l, err := ledger.OpenReader(at.Ledger())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no daemon has served the mailbox yet
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// move copies what is on another file system first, so that the renames follow each other. If
// it fails, no copy is left.
func move(ctx context.Context, root, state step, to Location) error {
	err := discard(root, state) // of a move that was cut short
	if err != nil {
		return err
	}
	for _, s := range []step{root, state} {
		if err == nil {
			err = s.copyOver(ctx)
		}
	}
	if err == nil {
		err = catchUp(ctx, root)
	}
	for _, s := range []step{root, state} {
		if err == nil {
			err = s.put()
		}
	}
	if err == nil {
		err = adopt(ctx, to)
	}
	for _, s := range []step{root, state} {
		if err == nil && s.hasNote() {
			err = s.note(true)
		}
	}
	if err != nil {
		return errors.Join(err, discard(root, state))
	}
	return nil
}

// removeOld removes the directories of which there are copies: never the mailbox alone, since a
// daemon would run the tasks of its state again. It goes on after entries that can't be removed.
func removeOld(root, state step) error {
	var left error
	for _, s := range []step{state, root} {
		err := s.removeOld()
		if _, only := errors.AsType[*dirtree.LeftError](err); !only && err != nil {
			return err
		}
		left = errors.Join(left, err)
	}
	if left != nil {
		return &LeftError{left}
	}
	return errors.Join(state.removeNote(), root.removeNote())
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
	_, err = retie(ctx, l, box, state)
	return err
}
