package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// floor measures what a task cannot do without, each by itself and one at a
// time: a process, a commit, a result file.
func floor(ctx context.Context, l *lab) ([]row, error) {
	count := max(l.tasks/10, 10)
	rows, err := l.race(ctx,
		contender{name: "start and end of a static process", count: count, run: repeated(func(string, int) error {
			p, err := os.StartProcess(l.tools.static, []string{"true"}, &os.ProcAttr{})
			if err != nil {
				return err
			}
			_, err = p.Wait()
			return err
		})},
		contender{name: "4 KB appended, fdatasync", count: count, run: repeated(commit)},
		contender{name: "1 KB to O_TMPFILE, fdatasync, linkat", count: count, run: repeated(place)},
	)
	for i := range rows {
		rows[i].unit, rows[i].beside = "/s", nil // three things, not three ways to do one
	}
	return rows, err
}

// repeated does a thing so often, one after the other.
func repeated(do func(dir string, n int) error) attempt {
	return func(ctx context.Context, dir string, count int) (effort, error) {
		begin := time.Now()
		for n := range count {
			if err := context.Cause(ctx); err != nil {
				return effort{}, err
			}
			if err := do(dir, n); err != nil {
				return effort{}, err
			}
		}
		return effort{wall: time.Since(begin)}, nil
	}
}

// commit is what a journal does that is written by nobody else.
func commit(dir string, _ int) error {
	f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 4096)); err != nil {
		return err
	}
	return unix.Fdatasync(int(f.Fd()))
}

// place is how a result file appears whole.
func place(dir string, n int) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open O_TMPFILE: %w", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, make([]byte, 1024)); err != nil {
		return err
	}
	if err := unix.Fdatasync(fd); err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, filepath.Join(dir, id(n)), unix.AT_SYMLINK_FOLLOW)
}
