package dirtree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CopyOptions say what to copy. The zero value copies everything that this user can read.
type CopyOptions struct {
	Skip   func(path string) bool         // paths not to copy; nil: none
	Link   func(path, target string) bool // links to copy; nil: all. The others are omitted.
	Aside  bool                           // the names of the copies appear whole, and existing names stay
	Unlock bool                           // make readable what belongs to this user, and leave out sockets, whose programs have ended
}

// A copier copies a directory that other programs write meanwhile. It follows no link.
type copier struct {
	CopyOptions
	from, to *Cursor

	omitted []string
}

// Copy copies what is in one directory to another one, which exists. It returns the paths that it
// omits: they are neither files, directories nor links, or this user can't read them.
func Copy(ctx context.Context, from, to string, opts CopyOptions) (omitted []string, err error) {
	source, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	return CopyIn(ctx, source, target, opts)
}

// CopyIn is Copy for the directories of roots.
func CopyIn(ctx context.Context, from, to *os.Root, opts CopyOptions) (omitted []string, err error) {
	c := copier{CopyOptions: opts}
	if c.from, err = OpenIn(from, Options{Unlock: opts.Unlock, Mounts: true}); err != nil {
		return nil, err
	}
	defer c.from.Close()
	if c.to, err = OpenIn(to, Options{Mounts: true}); err != nil {
		return nil, err
	}
	defer c.to.Close()
	if err := c.directory(ctx); err != nil {
		return nil, fmt.Errorf("copy %s: %w", from.Name(), err)
	}
	return c.omitted, nil
}

// directory copies the content of the current directory, which the copy has already.
func (c *copier) directory(ctx context.Context) error {
	dirs, err := c.files(ctx)
	for _, dir := range dirs {
		if err == nil {
			err = c.copyDirectory(ctx, dir)
		}
	}
	return err
}

// files copies all but the directories of the current directory, and returns these.
func (c *copier) files(ctx context.Context) (dirs []fs.FileInfo, err error) {
	from, err := c.from.Root()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := c.to.Root()
	if err != nil {
		return nil, err
	}
	defer to.Close()
	entries, err := fs.ReadDir(from.FS(), ".")
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.omit(".", err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c.Skip != nil && c.Skip(c.from.Path(e.Name())) {
			continue
		}
		info, err := from.Lstat(e.Name())
		switch {
		case isGone(err): // removed meanwhile
		case err != nil:
			err = c.omit(e.Name(), err)
		case info.IsDir():
			dirs = append(dirs, info)
		default:
			err = c.entry(from, to, info)
		}
		if err != nil && !isGone(err) {
			return nil, err
		}
	}
	return dirs, nil
}

// entry copies an entry that is no directory.
func (c *copier) entry(from, to *os.Root, info fs.FileInfo) error {
	name := info.Name()
	if _, err := to.Lstat(name); err == nil && c.Aside {
		return nil
	}
	switch info.Mode().Type() {
	case 0:
		return c.copyFile(from, to, name)
	case fs.ModeSymlink:
		return c.copyLink(from, to, name)
	case fs.ModeSocket:
		if c.Unlock {
			return nil
		}
	}
	return c.omit(name, nil)
}

func (c *copier) copyDirectory(ctx context.Context, info fs.FileInfo) error {
	name := info.Name()
	if err := unix.Mkdirat(c.to.FD(), name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mkdir", Path: c.to.Path(name), Err: err}
	}
	if err := c.to.Enter(name); err != nil {
		return err
	}
	switch err := c.from.Enter(name); {
	case isGone(err):
	case err != nil:
		err = c.omit(name, err)
		return errors.Join(err, c.finish(info), c.to.Leave())
	default:
		if err := errors.Join(c.directory(ctx), c.from.Leave()); err != nil {
			return err
		}
	}
	return errors.Join(c.finish(info), c.to.Leave())
}

// finish gives the current directory of the copy the mode and the time of the original.
func (c *copier) finish(info fs.FileInfo) error {
	dir, err := c.to.Root()
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Chmod(".", info.Mode().Perm()|0o700)
	if err == nil {
		err = dir.Chtimes(".", info.ModTime(), info.ModTime())
	}
	return err
}

func (c *copier) copyLink(from, to *os.Root, name string) error {
	target, err := from.Readlink(name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return c.omit(name, err)
	}
	if c.Link != nil && !c.Link(c.from.Path(name), target) {
		return c.omit(name, nil)
	}
	return to.Symlink(target, name)
}

// copyFile copies as much of a file as it had when it was opened. Holes stay holes: a file
// of the mailbox can claim any size.
func (c *copier) copyFile(from, to *os.Root, name string) (err error) {
	source, err := c.openFile(from, name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return c.omit(name, err)
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return c.omit(name, err)
	}
	made := name
	if c.Aside {
		made = ".restoring-" + name
	}
	file, err := to.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = copyData(file, source, info.Size())
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = to.Chtimes(made, info.ModTime(), info.ModTime()); err == nil && made != name {
		err = to.Rename(made, name)
	}
	return err
}

// openFile opens a file of the current directory for reading.
func (c *copier) openFile(from *os.Root, name string) (*os.File, error) {
	const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW
	file, err := from.OpenFile(name, flags, 0)
	if !c.Unlock || !errors.Is(err, fs.ErrPermission) {
		return file, err
	}
	if err := c.from.UnlockFile(name); err != nil {
		return nil, err
	}
	return from.OpenFile(name, flags, 0)
}

// copyData copies the data of a file, without its holes.
func copyData(to, from *os.File, size int64) error {
	for at := int64(0); at < size; {
		data, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // only a hole is left
		}
		if err != nil {
			return err
		}
		hole, err := from.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		hole = min(hole, size)
		if _, err = from.Seek(data, io.SeekStart); err == nil {
			_, err = to.Seek(data, io.SeekStart)
		}
		if err == nil && hole > data {
			_, err = io.CopyN(to, from, hole-data)
		}
		if errors.Is(err, io.EOF) {
			return nil // the file became shorter
		}
		if err != nil {
			return err
		}
		at = max(hole, data)
	}
	return to.Truncate(size)
}

// omit records an object that is not copied: one of another kind, a link that is not to be copied,
// or one that this user may not read.
func (c *copier) omit(name string, err error) error {
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENXIO) {
		return err
	}
	c.omitted = append(c.omitted, c.from.Path(name))
	return nil
}

func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
