package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// An effort is what a run took. The processor time is that of all processes,
// those of the tasks included; 0 when nobody can tell. It is what can be compared
// where a machine has other work.
type effort struct{ wall, cpu time.Duration }

// rate is how many of so many tasks were done in a second.
func (e effort) rate(count int) float64 { return float64(count) / e.wall.Seconds() }

// each is the processor time of one of so many tasks, in us.
func (e effort) each(count int) float64 { return e.cpu.Seconds() * 1e6 / float64(count) }

// ownEffort is what something took that this program does by itself, and the
// processes that it started and that ended.
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

// sideBySide does a thing so often, some at a time.
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
