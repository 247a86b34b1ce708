package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A lab is where measures are made: a directory that is gone afterwards, and
// the programs in it.
type lab struct {
	rounds int
	tasks  int
	long   bool
	dir    string
	tools  tools
	begun  time.Time
	load   string // of the machine, by others
	past   *past  // made once
	gauge  gauge
	used   []string // directories that are not removed yet
	blocks int64    // of 512 bytes, that they have of the disk
}

// open makes the directory and builds what is measured.
func (l *lab) open(ctx context.Context, where string) (err error) {
	l.begun, l.load = time.Now(), loadAverage()
	l.dir, err = os.MkdirTemp(where, "bench-")
	if err != nil {
		return fmt.Errorf("open lab: %w", err)
	}
	spread(l.dir)
	if l.tools, err = build(ctx, filepath.Join(l.dir, "bin")); err != nil {
		l.close()
		return fmt.Errorf("open lab: %w", err)
	}
	return nil
}

func (l *lab) close() {
	if err := os.RemoveAll(l.dir); err != nil {
		l.say("%v", err)
	}
}

// say tells how far we are.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0fs  "+format+"\n", append([]any{time.Since(l.begun).Seconds()}, args...)...)
}

// in has something done in a new directory, which is removed some time later.
func (l *lab) in(ctx context.Context, do func(dir string) error) error {
	dir, err := l.fresh(ctx)
	if err != nil {
		return err
	}
	err = do(dir)
	return errors.Join(err, l.tidy(dir))
}

// fresh makes a directory for a run. What was written before is on the disk by
// then, and where it is nothing was deleted lately, so that nobody pays for others.
func (l *lab) fresh(ctx context.Context) (dir string, err error) {
	unix.Sync()
	tries := 0
	err = l.gauge.settle(ctx, func() (times float64, err error) {
		dir, err = os.MkdirTemp(l.dir, "") // where ext4 puts it, its name decides
		if err != nil || !strings.HasPrefix(fileSystem(l.dir), "ext4") {
			return 0, err // others do not search so
		}
		times, err = searching(dir)
		unix.Sync()
		if tries++; times > slow && tries == 1 {
			l.say("  looks for another place: creating a file takes %.0f times as long as naming one", times)
		}
		return times, err
	})
	return dir, err
}
