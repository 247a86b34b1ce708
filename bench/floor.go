package main

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// floor measures the necessary parts of a task, each alone: a process, a commit, a result file;
// one at a time, and results also as many at a time as a busy worker has.
func floor(ctx context.Context, l *lab) ([]row, error) {
	count := max(l.tasks/10, 10)
	result := func(dir string, n int) error { return putWhole(dir, id(n), make([]byte, 1024)) }
	rows, err := l.race(ctx,
		contender{name: "start and end of a static process", count: count, run: repeated(1, func(string, int) error {
			p, err := os.StartProcess(l.tools.static, []string{"true"}, &os.ProcAttr{})
			if err != nil {
				return err
			}
			_, err = p.Wait()
			return err
		})},
		contender{name: "4 KB appended, fdatasync", count: count, run: repeated(1, commit)},
		contender{name: "1 KB to O_TMPFILE, fdatasync, linkat", count: count, run: repeated(1, result)},
		contender{name: "1 KB to O_TMPFILE, fdatasync, linkat, 16 side by side", count: 4 * count, run: repeated(together, result)},
	)
	for i := range rows {
		rows[i].unit, rows[i].beside = "/s", nil // four parts of a task, not four ways to do one
	}
	return rows, err
}

// repeated calls do once per task, width at a time.
func repeated(width int, do func(dir string, n int) error) attempt {
	return func(ctx context.Context, dir string, count int) (effort, error) {
		return ownEffort(func() error {
			return sideBySide(ctx, width, count, func(n int) error { return do(dir, n) })
		})
	}
}

// commit is the sync of a journal without other writers.
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
