package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailboxd/internal/stores/dirtree"
	"mailboxd/mailbox"
)

// A step moves one directory. To another file system, it copies the directory beside its new
// path, notes there where the copy comes from, and renames the copy.
type step struct{ from, to string }

func (s step) copyPath() string { return s.to + ".moving" }

// notePath returns the path of the note about a copy. It is there until the move is complete.
func (s step) notePath() string { return s.to + ".moving-from" }

func (s step) noteText(adopted bool) string {
	if adopted {
		return s.from + "\nadopted\n"
	}
	return s.from + "\n"
}

// note writes the note. With adopted, the new state belongs to the new mailbox, and only the
// old directories are to be removed.
func (s step) note(adopted bool) error {
	return dirtree.WriteFile(s.notePath(), []byte(s.noteText(adopted)))
}

// hasNote reports whether the new directory, or what is beside it, is a copy of the old one.
func (s step) hasNote() bool {
	text, err := os.ReadFile(s.notePath())
	return err == nil && string(text) == s.noteText(false) || s.adopted()
}

func (s step) adopted() bool {
	text, err := os.ReadFile(s.notePath())
	return err == nil && string(text) == s.noteText(true)
}

func (s step) removeNote() error {
	if err := os.Remove(s.notePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// check checks that the directory can be moved, or was moved before.
func (s step) check() error {
	if s.from == s.to {
		return nil
	}
	_, missing := os.Lstat(s.from)
	err := mustBeEmpty(s.to)
	switch {
	case missing == nil && s.hasNote() && !exists(s.copyPath()):
		return nil
	case missing == nil:
		return err
	case !errors.Is(missing, fs.ErrNotExist):
		return missing
	case err == nil: // nothing at either path
		return fmt.Errorf("%s does not exist", s.from)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// copyOver copies the directory if it can't be renamed.
func (s step) copyOver(ctx context.Context) error {
	if s.from == s.to || !exists(s.from) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.to), 0o700); err != nil {
		return err
	}
	var here, there unix.Stat_t
	if err := errors.Join(unix.Stat(s.from, &here), unix.Stat(filepath.Dir(s.to), &there)); err != nil || here.Dev == there.Dev {
		return err
	}
	if err := errors.Join(dirtree.Remove(s.copyPath()), os.Mkdir(s.copyPath(), 0o700), s.note(false)); err != nil {
		return err
	}
	if err := copyWhole(ctx, s.from, s.copyPath(), nil); err != nil {
		return err
	}
	return errors.Join(os.Chmod(s.copyPath(), os.FileMode(here.Mode).Perm()), syncAll(s.copyPath()))
}

// copyWhole copies a directory, and refuses what can't be copied.
func copyWhole(ctx context.Context, from, to string, skip func(string) bool) error {
	omitted, err := dirtree.Copy(ctx, from, to, dirtree.CopyOptions{Skip: skip, Unlock: true})
	if err == nil && len(omitted) > 0 {
		err = fmt.Errorf("%s can't be copied to another file system", filepath.Join(from, omitted[0]))
	}
	return err
}

// tasks/ of a mailbox, and its name while the mailbox is moved to another file system: nobody
// appends to a file in it then, but a program that has the file open.
const (
	tasksName  = "tasks"
	frozenName = "tasks.moving"
)

// catchUp copies the task files of a mailbox again that changed during the copy.
func catchUp(ctx context.Context, root step) error {
	if !root.hasNote() {
		return nil
	}
	frozen, copied := filepath.Join(root.from, frozenName), filepath.Join(root.copyPath(), tasksName)
	if err := os.Rename(filepath.Join(root.from, tasksName), frozen); err != nil {
		return err
	}
	same := func(name string) bool {
		old, err := os.Lstat(filepath.Join(frozen, name))
		if err != nil || old.IsDir() {
			return false
		}
		made, err := os.Lstat(filepath.Join(copied, name))
		return err == nil && made.Mode().Type() == old.Mode().Type() &&
			(!old.Mode().IsRegular() || made.Size() == old.Size() && made.ModTime().Equal(old.ModTime()))
	}
	return errors.Join(copyWhole(ctx, frozen, copied, same), syncAll(root.copyPath()))
}

// discard removes copies that have no use yet, and has the old mailbox as it was.
func discard(root, state step) (err error) {
	for _, s := range []step{root, state} {
		if !s.hasNote() {
			continue
		}
		if !exists(s.copyPath()) && exists(s.to) {
			err = errors.Join(err, os.Rename(s.to, s.copyPath()))
		}
		if err == nil {
			err = errors.Join(s.removeNote(), dirtree.Remove(s.copyPath()))
		}
	}
	frozen, tasks := filepath.Join(root.from, frozenName), filepath.Join(root.from, tasksName)
	if err != nil || !exists(frozen) {
		return err
	}
	if err := os.Remove(tasks); err != nil && !errors.Is(err, fs.ErrNotExist) { // mailbox.Open makes an empty one
		return fmt.Errorf("tasks came to %s while the mailbox was moved; append them to the files in %s, and remove the first: %w", tasks, frozen, err)
	}
	return os.Rename(frozen, tasks)
}

// put renames the directory or its copy, unless that was done before.
func (s step) put() error {
	source := s.from
	if s.hasNote() {
		source = s.copyPath()
	}
	if s.from == s.to || !exists(source) {
		return nil
	}
	if err := renameDirectory(source, s.to); err != nil {
		return err
	}
	return errors.Join(syncAll(filepath.Dir(s.to)), syncAll(filepath.Dir(source)))
}

// renameDirectory renames a directory. An empty directory in its place goes.
func renameDirectory(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// removeOld removes the directory of which there is a copy. A mount point stays, empty. A daemon
// refuses to use the directory from the first removal on.
func (s step) removeOld() error {
	if !s.hasNote() || !exists(s.from) {
		return nil
	}
	if err := mailbox.MarkMoved(s.from, s.to); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.from, ledgerName)); err != nil && !errors.Is(err, fs.ErrNotExist) { // first: a daemon would run its tasks again
		return err
	}
	tasks := filepath.Join(s.from, tasksName)
	if err := os.Remove(tasks); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tasks came to %s after the move; append them to files in %s, remove the first, and repeat: %w", tasks, filepath.Join(s.to, tasksName), err)
	}
	if err := dirtree.Empty(s.from, mailbox.IsMovedMark); err != nil {
		return err
	}
	if err := mailbox.UnmarkMoved(s.from); err != nil {
		return err
	}
	if err := os.Remove(s.from); err != nil && mustBeEmpty(s.from) != nil {
		return err
	}
	return nil
}

// syncAll has everything on the disk that was written to the file system of a directory.
func syncAll(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := unix.Syncfs(int(file.Fd())); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", dir, err), file.Close())
	}
	return file.Close()
}
