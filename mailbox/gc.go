package mailbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/stores/dirtree"
)

// A Kept is data with a retention time: a run directory, a result in the history, or the
// dead letters of a day.
type Kept struct {
	ID       envelope.ID // of its task; "" for dead letters
	Revision int         // of its task; 0 for dead letters
	Path     string      // relative to its directory
	Changed  time.Time
	Bytes    int64
}

// RunDirs iterates over all run directories, in no order. An error of one of them doesn't
// end the iteration; its item then has the path alone.
func (s *State) RunDirs() iter.Seq2[Kept, error] { return s.kept(runsName) }

// Histories iterates over replaced and refused results.
func (s *State) Histories() iter.Seq2[Kept, error] { return s.kept(historyName) }

// Drop removes an item of RunDirs or Histories, and the directory of its task if that is
// empty. It makes directories of this user writable first. It goes on after an entry that can't
// be removed; the error then wraps a *dirtree.LeftError.
func (s *State) Drop(k Kept) error {
	if err := dirtree.RemoveIn(s.root, k.Path); err != nil {
		return fmt.Errorf("drop %s: %w", k.Path, err)
	}
	_ = s.root.Remove(filepath.Dir(k.Path)) // fails if there is more in it
	return nil
}

// kept iterates over <dir>/<task>/<revision>...
func (s *State) kept(dir string) iter.Seq2[Kept, error] {
	return func(yield func(Kept, error) bool) {
		for task, err := range entries(s.root, dir) {
			if err != nil {
				yield(Kept{}, fmt.Errorf("list %s: %w", dir, err))
				return
			}
			for name, err := range entries(s.root, filepath.Join(dir, task)) {
				kept, known := Kept{Path: filepath.Join(dir, task)}, err == nil
				if known {
					kept, known, err = s.keep(dir, task, name)
				}
				if (known || err != nil) && !yield(kept, err) {
					return
				}
			}
		}
	}
}

// keep describes an entry; ours is false for a foreign one.
func (s *State) keep(dir, task, name string) (k Kept, ours bool, err error) {
	number, _, _ := strings.Cut(name, ".")
	revision, err := strconv.Atoi(number)
	id, unsafe := idOf(task)
	if err != nil || unsafe != nil {
		return k, false, nil
	}
	k = Kept{ID: id, Revision: revision, Path: filepath.Join(dir, task, name)}
	size, err := dirtree.MeasureIn(s.root, k.Path)
	k.Bytes, k.Changed = size.Bytes, size.Changed
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil // removed meanwhile
	}
	return k, err == nil, err
}

// idOf reverses envelope.ID.Dir.
func idOf(dir string) (envelope.ID, error) {
	if dot := envelope.ID("."); dir == dot.Dir() {
		return dot, nil
	}
	return envelope.ParseID(dir)
}

// entries iterates over the names in a directory, in chunks; a missing directory is empty.
func entries(root *os.Root, path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := root.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield("", err)
			return
		}
		defer dir.Close()
		for err == nil {
			var names []string
			names, err = dir.Readdirnames(256)
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
		}
		if err != io.EOF && !errors.Is(err, fs.ErrNotExist) { // it may be removed meanwhile
			yield("", err)
		}
	}
}

// DeadLetters lists the files of dead letters; Changed is the end of the day in their
// names.
func (b *Box) DeadLetters() (files []Kept, err error) {
	root, release := b.use()
	defer release()
	for name, err := range entries(root, rejectedName) {
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		day, err := time.Parse(time.DateOnly+taskSuffix, name)
		if err != nil {
			continue // not a file of dead letters
		}
		path := filepath.Join(rejectedName, name)
		if info, err := root.Lstat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, Kept{Path: path, Changed: day.AddDate(0, 0, 1), Bytes: info.Size()})
		}
	}
	return files, nil
}

// DropDeadLetters removes an item of DeadLetters.
func (b *Box) DropDeadLetters(k Kept) error {
	root, release := b.use()
	defer release()
	if err := root.Remove(k.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop dead letters %s: %w", k.Path, err)
	}
	return nil
}
