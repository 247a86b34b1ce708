package mailbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Retie returns the cursors for files that were copied or moved: each cursor gets the inode
// of the file in tasks/ that begins with the content before it. It looks at the file of the
// same name first. A cursor without such a file gets no inode, and its file counts as gone.
func (b *Box) Retie(cursors []Cursor) ([]Cursor, error) {
	root, release := b.use()
	defer release()
	dir, err := root.Open(tasksName)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return retie(root, tasksName, names, cursors)
}

// Retie is Box.Retie for the files of runs, which are never renamed.
func (s *State) Retie(cursors []Cursor) ([]Cursor, error) {
	return retie(s.root, RunFilesName, nil, cursors)
}

// retie ties cursors to the files of their own names in a directory, or to others in it.
func retie(root *os.Root, dir string, others []string, cursors []Cursor) ([]Cursor, error) {
	tied := slices.Clone(cursors)
	for i := range tied {
		own := path.Base(tied[i].Path)
		tied[i].Dev, tied[i].Inode = 0, 0
		for _, name := range slices.Concat([]string{own}, others) {
			at, ok, err := tieTo(root, dir+"/"+name, tied[i], name == own)
			if err != nil {
				return nil, err
			}
			if ok {
				tied[i].Dev, tied[i].Inode = at.dev, at.ino
				break
			}
		}
	}
	return tied, nil
}

// tieTo returns the inode of a file if it begins with the content before a cursor. A cursor
// at the beginning fits only the file of its own name.
func tieTo(root *os.Root, name string, c Cursor, own bool) (at inode, ok bool, err error) {
	if c.Offset == 0 && !own {
		return at, false, nil
	}
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return at, false, nil
	}
	if err != nil {
		return at, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < c.Offset {
		return at, false, err
	}
	stamp, err := stampOf(int(file.Fd()))
	if err != nil {
		return at, false, err
	}
	same, err := (&source{cursor: c, file: file}).unchanged(info.Size())
	return stamp.key, same, err
}

// Unread returns the first lines after the cursors, at most limit, and how many there are.
// Raw is a copy. The last line of a file counts only if it has its newline.
func (b *Box) Unread(cursors []Cursor, opts TailOptions, limit int) (lines []Line, count int, err error) {
	t := b.Tail(cursors, opts)
	defer func() { err = errors.Join(err, t.Close()) }()
	for {
		batch, err := t.Next()
		if err != nil || batch.Empty() {
			return lines, count, err
		}
		for _, l := range batch.Lines {
			if len(bytes.TrimSpace(l.Raw)) == 0 {
				continue
			}
			if count++; len(lines) < limit {
				l.Raw = bytes.Clone(l.Raw)
				lines = append(lines, l)
			}
		}
		t.Done(batch)
	}
}
