package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/fault"
)

// A file is an open file of a run directory. It bypasses the poller of package os, which
// doesn't support regular files.
type file struct {
	name string // in the directory
	fd   int
	size int64 // when it was opened
}

// openRegular opens a file of a run directory. The agent controls the directory, so links
// out of it and files that block are refused.
func openRegular(dir, name string) (*file, error) {
	path := filepath.Join(dir, name)
	fd := -1
	err := uninterrupted(func() (err error) {
		if err := fault.Read("open " + name); err != nil {
			return err
		}
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err == unix.ELOOP {
		fd, err = openLink(dir, name)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var info unix.Stat_t
	err = unix.Fstat(fd, &info)
	if err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &file{name, fd, info.Size}, nil
}

// openLink opens the target of a symbolic link inside the directory.
func openLink(dir, name string) (int, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return -1, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		err = uninterrupted(func() (err error) {
			if err := fault.Read("read " + f.name); err != nil {
				return err
			}
			more, err = unix.Pread(f.fd, p[n:], offset+int64(n))
			return err
		})
		if err == nil && more == 0 {
			return n, io.EOF
		}
		n += max(more, 0)
	}
	return n, err
}

// read reads a part of the file, shorter at its end.
func (f *file) read(offset, length int64) ([]byte, error) {
	text := make([]byte, max(0, min(length, f.size-offset)))
	n, err := f.ReadAt(text, offset)
	if errors.Is(err, io.EOF) {
		err = nil // the file was cut short since
	}
	if err != nil {
		err = &fs.PathError{Op: "read", Path: f.name, Err: err}
	}
	return text[:n], err
}

func (f *file) close() { unix.Close(f.fd) }

// create writes a new file. It isn't synced: a power cut ends its run too.
func create(path string, data []byte) error {
	fd := -1
	err := uninterrupted(func() (err error) {
		if err := fault.Read("write " + filepath.Base(path)); err != nil {
			return err
		}
		fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for err == nil && len(data) > 0 {
		var n int
		err = uninterrupted(func() (err error) {
			n, err = unix.Write(fd, data)
			return err
		})
		data = data[max(n, 0):]
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// uninterrupted repeats a system call after EINTR.
func uninterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
