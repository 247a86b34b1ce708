package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// A copier copies a directory that other programs write meanwhile. It follows no link, and
// leaves no root. The zero skip copies everything.
type copier struct {
	from, to *os.Root
	skip     func(name string) bool
	aside    bool // the names of the copies appear whole, and existing names stay

	omitted []string // neither files, directories nor links, or not readable
}

// copyTree copies what is in one directory to another one, which exists, and returns the
// paths that it omits.
func copyTree(ctx context.Context, from, to string, skip func(string) bool, aside bool) (omitted []string, err error) {
	c := copier{skip: skip, aside: aside}
	if c.from, err = os.OpenRoot(from); err != nil {
		return nil, err
	}
	defer c.from.Close()
	if c.to, err = os.OpenRoot(to); err != nil {
		return nil, err
	}
	defer c.to.Close()
	if err := c.directory(ctx, "."); err != nil {
		return nil, fmt.Errorf("copy %s: %w", from, err)
	}
	return c.omitted, nil
}

// directory copies the content of a directory that the copy has already.
func (c *copier) directory(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(c.from.FS(), dir)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return c.omit(dir, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.skip != nil && c.skip(name) {
			continue
		}
		if err := c.entry(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) entry(ctx context.Context, name string) error {
	info, err := c.from.Lstat(name)
	if isGone(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		return c.omit(name, err)
	}
	if _, err := c.to.Lstat(name); err == nil && c.aside && !info.IsDir() {
		return nil
	}
	switch {
	case info.IsDir():
		return c.copyDirectory(ctx, name, info)
	case info.Mode().IsRegular():
		return c.copyFile(name)
	case info.Mode().Type() == fs.ModeSymlink:
		return c.copyLink(name)
	}
	return c.omit(name, nil)
}

func (c *copier) copyDirectory(ctx context.Context, name string, info fs.FileInfo) error {
	if err := c.to.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err := c.directory(ctx, name)
	if err == nil {
		err = c.to.Chmod(name, info.Mode().Perm()|0o700)
	}
	if err == nil {
		err = c.to.Chtimes(name, info.ModTime(), info.ModTime())
	}
	return err
}

func (c *copier) copyLink(name string) error {
	target, err := c.from.Readlink(name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return c.omit(name, err)
	}
	return c.to.Symlink(target, name)
}

// copyFile copies as much of a file as it had when it was opened. Holes stay holes: a file
// of the mailbox can claim any size.
func (c *copier) copyFile(name string) (err error) {
	from, err := c.from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return c.omit(name, err)
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return c.omit(name, err)
	}
	to := name
	if c.aside {
		to = path.Join(path.Dir(name), ".restoring-"+path.Base(name))
	}
	file, err := c.to.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = copyData(file, from, info.Size())
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = c.to.Chtimes(to, info.ModTime(), info.ModTime()); err == nil && to != name {
		err = c.to.Rename(to, name)
	}
	return err
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

// omit records an object that is not copied: one of another kind, or one that this user may
// not read.
func (c *copier) omit(name string, err error) error {
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENXIO) {
		return err
	}
	c.omitted = append(c.omitted, name)
	return nil
}

func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
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
