package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// An effort is the time of a run. The processor time is that of all processes, with those of
// the tasks; 0 if unknown. It is comparable on a machine with other work.
type effort struct{ wall, cpu time.Duration }

// rate returns the tasks per second.
func (e effort) rate(count int) float64 { return float64(count) / e.wall.Seconds() }

// each returns the processor time per task, in us.
func (e effort) each(count int) float64 { return e.cpu.Seconds() * 1e6 / float64(count) }

// ownEffort returns the effort of do in this process and in those of its child processes that
// ended.
func ownEffort(do func() error) (took effort, err error) {
	begin, before := time.Now(), ownTime()
	err = do()
	return effort{wall: time.Since(begin), cpu: ownTime() - before}, err
}

func ownTime() (used time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u) // cannot fail for these two
		used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return used
}

// sideBySide calls do count times, in at most width goroutines at a time.
func sideBySide(ctx context.Context, width, count int, do func(n int) error) error {
	var next atomic.Int64
	work, ctx := errgroup.WithContext(ctx)
	for range width {
		work.Go(func() error {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				if err := errors.Join(context.Cause(ctx), do(n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}
