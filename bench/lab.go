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

// A lab is the temporary directory of the measures, and the programs in it.
type lab struct {
	rounds int
	tasks  int
	long   bool
	dir    string
	tools  tools
	begun  time.Time
	load   string // load average of the machine before the run
	past   *past  // made on first use
	gauge  gauge
	used   []string // directories that are not removed yet
	blocks int64    // of 512 bytes, used by them
}

// open makes the directory and builds the programs.
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

// say prints the progress.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0fs  "+format+"\n", append([]any{time.Since(l.begun).Seconds()}, args...)...)
}

// in calls do with a new directory, which is removed some time later.
func (l *lab) in(ctx context.Context, do func(dir string) error) error {
	dir, err := l.fresh(ctx)
	if err != nil {
		return err
	}
	err = do(dir)
	return errors.Join(err, l.tidy(dir))
}

// fresh makes a directory for a run. Earlier writes are on the disk by then, and no files were
// deleted lately in its location, so that a run does not pay for earlier ones.
func (l *lab) fresh(ctx context.Context) (dir string, err error) {
	unix.Sync()
	tries := 0
	err = l.gauge.settle(ctx, func() (times float64, err error) {
		dir, err = os.MkdirTemp(l.dir, "") // ext4 chooses the location by the name
		if err != nil || !strings.HasPrefix(fileSystem(l.dir), "ext4") {
			return 0, err // other file systems don't search like this
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
