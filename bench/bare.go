package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A bare mailbox is one in which nothing is read, judged or remembered.
type bare struct {
	dir  string
	log  *os.File     // what the redo log is to a daemon
	page []byte       // what is written there, as it is where it can be taken from directly
	next atomic.Int64 // place in the log
}

// A frame gets a place of its own in the log, which begins anew where it ends.
const location, logSize = 32 << 10, 4 << 20

// Sizes of what is written for a task.
const requestSize, intentSize, endSize, resultSize = 1 << 10, 1 << 10, 2 << 10, 1800

// newBare makes a bare mailbox whose log was written once, so that a sync of
// its frames has no metadata to write.
func newBare(dir string) (*bare, error) {
	b := &bare{dir: dir}
	err := errors.Join(os.Mkdir(b.path("runs"), 0o700), os.Mkdir(b.path("results"), 0o700))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(b.path("log"), make([]byte, logSize), 0o600); err != nil {
		return nil, err
	}
	if b.page, err = unix.Mmap(-1, 0, location, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	b.log, err = os.OpenFile(b.path("log"), os.O_WRONLY|unix.O_DSYNC|unix.O_DIRECT, 0)
	if errors.Is(err, unix.EINVAL) { // not everywhere
		b.log, err = os.OpenFile(b.path("log"), os.O_WRONLY|unix.O_DSYNC, 0)
	}
	if err == nil {
		err = b.log.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bare) close() error { return errors.Join(b.log.Close(), unix.Munmap(b.page)) }

func (b *bare) path(name string) string { return filepath.Join(b.dir, name) }

// commit makes a frame of so many bytes durable, in whole blocks.
func (b *bare) commit(size int) error {
	const block = 4096
	_, err := b.log.WriteAt(b.page[:(size+block-1)/block*block], (b.next.Add(1)*location)%logSize)
	return err
}

// put makes a result durable, and then visible.
func (b *bare) put(id string) error {
	text := fmt.Sprintf(`{"task_id":%q,"status":"ok","output":{"summary":"","actions":[]}}`, id)
	return putWhole(b.path("results"), id+".json", []byte(text+strings.Repeat("\n", resultSize-len(text))))
}

// putWhole is how a result file appears: durable first, then visible.
func putWhole(dir, name string, text []byte) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open O_TMPFILE: %w", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, text); err != nil {
		return err
	}
	if err := unix.Fdatasync(fd); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if unix.Linkat(fd, "", unix.AT_FDCWD, path, unix.AT_EMPTY_PATH) == nil { // not everybody may
		return nil
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}
