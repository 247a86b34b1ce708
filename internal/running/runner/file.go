package runner

import (
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// open opens a file without the poller. os.OpenFile offers each file to the poller, which
// supports none of a run's files: seven system calls instead of one. Started processes
// don't inherit the descriptor.
func open(path string, flags int) (fd int, err error) {
	err = uninterrupted(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// uninterrupted repeats a system call after EINTR.
func uninterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// readAll reads the rest of a file, up to max bytes.
func readAll(fd, max int) ([]byte, error) {
	data := make([]byte, 0, 512)
	for len(data) < max {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n := 0
		err := uninterrupted(func() (err error) {
			n, err = unix.Read(fd, data[len(data):min(cap(data), max)])
			return err
		})
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		data = data[:len(data)+n]
	}
	return data, nil
}

// readProc reads a file of /proc, which has no size.
func readProc(path string) ([]byte, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readAll(fd, maxRecord)
}

// writeAll writes all data at an offset.
func writeAll(fd int, data []byte, offset int64) error {
	for len(data) > 0 {
		n := 0
		err := uninterrupted(func() (err error) {
			n, err = unix.Pwrite(fd, data, offset)
			return err
		})
		if err != nil {
			return err
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

// createFile creates a new file, and returns it open.
func createFile(path string, data []byte) (int, error) {
	fd, err := open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return -1, err
	}
	if err := writeAll(fd, data, 0); err != nil {
		unix.Close(fd)
		return -1, &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return fd, nil
}

// link gives an open file another name, if the name is free. A file without any name can't
// get one.
func link(fd int, path string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}
