package retention

import (
	"context"
	"slices"
	"time"

	"mailboxd/mailbox"
)

// oldestAtOnce limits how many run directories are kept in memory to find the oldest ones.
const oldestAtOnce = 4096

// collectRuns removes run directories that are too old, and then the oldest ones while the
// total is too large.
func (c Collector) collectRuns(ctx context.Context, r Policy, now time.Time, dry bool, gone *collection) error {
	if r.Runs <= 0 && r.MaxRunBytes <= 0 {
		return nil
	}
	work, err := c.unapplied()
	if err != nil {
		return err
	}
	old, left := before(now, r.Runs), int64(0)
	for k, err := range c.State.RunDirs() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.leave(k, err, gone)
			continue
		}
		left += k.Bytes
		if !k.Changed.Before(old) {
			continue
		}
		settled, err := c.settled(ctx, k)
		if err != nil {
			return err
		}
		if settled && !work[revision{k.ID, k.Revision}] && c.drop(k, dry, &gone.Runs, gone) {
			left -= k.Bytes
		}
	}
	if r.MaxRunBytes <= 0 {
		return nil
	}
	return c.shrinkRuns(ctx, left-r.MaxRunBytes, old, work, dry, gone)
}

// shrinkRuns removes the oldest directories until enough bytes are freed, or none may be
// removed.
func (c Collector) shrinkRuns(ctx context.Context, excess int64, after time.Time, work map[revision]bool, dry bool, gone *collection) error {
	for excess > 0 {
		oldest, err := c.oldestRuns(ctx, after, work)
		if err != nil || len(oldest) == 0 {
			return err
		}
		for _, k := range oldest {
			if excess <= 0 {
				return nil
			}
			if c.drop(k, dry, &gone.Runs, gone) {
				excess -= k.Bytes
			}
		}
		after = oldest[len(oldest)-1].Changed.Add(1)
	}
	return nil
}

// oldestRuns returns the oldest removable directories whose last change isn't before a
// time, the oldest first.
func (c Collector) oldestRuns(ctx context.Context, after time.Time, work map[revision]bool) (oldest []mailbox.Kept, err error) {
	byAge := func(a, b mailbox.Kept) int { return a.Changed.Compare(b.Changed) }
	for k, err := range c.State.RunDirs() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil || k.Changed.Before(after) {
			continue // collectRuns counts what can't be read
		}
		settled, err := c.settled(ctx, k)
		if err != nil {
			return nil, err
		}
		if settled && !work[revision{k.ID, k.Revision}] {
			oldest = append(oldest, k)
		}
		if len(oldest) >= 2*oldestAtOnce {
			slices.SortFunc(oldest, byAge)
			oldest = oldest[:oldestAtOnce]
		}
	}
	slices.SortFunc(oldest, byAge)
	return oldest[:min(len(oldest), oldestAtOnce)], nil
}
