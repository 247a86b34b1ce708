// Package retention removes old data of finished tasks. It touches only tasks that are
// done, put and delivered.
package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// Policy says how long to keep data, counted from its last change. Zero keeps it for ever.
// No Policy removes result files.
type Policy struct {
	Runs        time.Duration // run directories
	History     time.Duration // replaced and refused results
	Rejected    time.Duration // dead letters
	Ledger      time.Duration // requests, results, events and messages; ids and hashes stay
	Worktrees   time.Duration // clones with work that was not applied
	MaxRunBytes int64         // above this size, the oldest run directories go earlier
}

// Collected counts the removed data, or the data that would be removed.
type Collected struct {
	Runs     int   `json:"runs"`
	Clones   int   `json:"worktrees"`
	History  int   `json:"history"`
	Rejected int   `json:"rejected_days"`
	Bodies   int   `json:"requests"`
	Events   int   `json:"events"`
	Messages int   `json:"messages"`
	Files    int   `json:"artifacts"`
	Bytes    int64 `json:"bytes"` // of files; the ledger reuses its free space

	Left  int    `json:"left"`            // what could not be removed
	Cause string `json:"cause,omitempty"` // one of them, and why
}

// The first collection comes some time after the start, so that it doesn't slow the start
// down. Further ones follow once a day. A page of rows is one short transaction.
const (
	page            = 1000
	firstCollection = 10 * time.Minute
	nextCollection  = 24 * time.Hour
)

// A Collector removes the data that a Policy doesn't keep. It owns none of its parts.
type Collector struct {
	Box    *mailbox.Box
	State  *mailbox.State
	Ledger *ledger.Ledger

	Artifacts *artifact.Store
}

// ServeDaily calls collect once a day until ctx ends, and logs what it removed.
func ServeDaily(ctx context.Context, log zerolog.Logger, collect func(context.Context) (Collected, error)) {
	timer := time.NewTimer(firstCollection)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(nextCollection)
		gone, err := collect(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.Error().Err(err).Msg("not everything could be collected; trying again tomorrow")
		case gone != (Collected{}):
			if gone.Left > 0 {
				log.Warn().Int("left", gone.Left).Str("cause", gone.Cause).Msg("some directories could not be removed; mailboxd doctor lists them")
			}
			log.Info().Int("runs", gone.Runs).Int("worktrees", gone.Clones).Int("artifacts", gone.Files).Int("requests", gone.Bodies).
				Int("events", gone.Events).Int("messages", gone.Messages).Int64("bytes", gone.Bytes).Msg("collected")
		}
	}
}

// Collect removes the data that r doesn't keep, or only counts it if dry. It may run beside
// the engine.
func (c Collector) Collect(ctx context.Context, r Policy, now time.Time, dry bool) (Collected, error) {
	var gone collection
	err := errors.Join(
		c.collectClones(ctx, before(now, r.Worktrees), now, dry, &gone),
		c.collectRuns(ctx, r, now, dry, &gone),
		c.collectHistory(ctx, before(now, r.History), dry, &gone),
		c.collectRejected(before(now, r.Rejected), dry, &gone),
		c.collectLedger(ctx, before(now, r.Ledger), dry, &gone),
		c.collectArtifacts(ctx, before(now, r.Runs), now, dry, &gone),
		c.forgetRunFiles(ctx, dry),
	)
	if !dry && ctx.Err() == nil {
		err = errors.Join(err, c.State.PutLeft(gone.left))
	}
	return gone.Collected, err
}

// forgetRunFiles removes how far task files of runs were read, which are gone.
func (c Collector) forgetRunFiles(ctx context.Context, dry bool) error {
	files, err := c.Ledger.Files(ctx)
	gone := func(f ledger.File) bool { return f.Inode == 0 && mailbox.Cursor(f).IsRunFile() }
	if err != nil || dry || !slices.ContainsFunc(files, gone) {
		return err
	}
	return c.Ledger.Update(ctx, func(tx *ledger.Tx) error { return tx.DropFiles(mailbox.RunFilesName) })
}

// before returns the latest last change of data to remove now; zero: none.
func before(now time.Time, keep time.Duration) time.Time {
	if keep <= 0 {
		return time.Time{}
	}
	return now.Add(-keep)
}

// drop removes and counts one thing; if dry, it only counts. It reports false for what can't be
// removed, which is counted as left.
func (c Collector) drop(k mailbox.Kept, dry bool, count *int, gone *collection) bool {
	if !dry {
		if err := c.State.Drop(k); err != nil {
			c.leave(k, err, gone)
			return false
		}
	}
	*count++
	gone.Bytes += k.Bytes
	return true
}

// settled reports whether a revision is settled. An unknown revision belongs to a lost
// ledger, or is being accepted.
func (c Collector) settled(ctx context.Context, k mailbox.Kept) (bool, error) {
	rows, err := c.Ledger.Revisions(ctx, k.ID)
	for _, row := range rows {
		if row.Revision == k.Revision {
			return row.State == task.Done && row.Put && row.Delivered, err
		}
	}
	return err == nil && time.Since(k.Changed) > accepting, err
}

// accepting is the longest time between a directory's creation and its task in the ledger.
const accepting = time.Hour

func (c Collector) collectHistory(ctx context.Context, before time.Time, dry bool, gone *collection) error {
	if before.IsZero() {
		return nil
	}
	for k, err := range c.State.Histories() {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.leave(k, err, gone)
		case k.Changed.Before(before):
			c.drop(k, dry, &gone.History, gone)
		}
	}
	return nil
}

func (c Collector) collectRejected(before time.Time, dry bool, gone *collection) error {
	if before.IsZero() {
		return nil
	}
	files, err := c.Box.DeadLetters()
	for _, k := range files {
		if !k.Changed.Before(before) {
			continue
		}
		if !dry {
			if err := c.Box.DropDeadLetters(k); err != nil {
				return err
			}
		}
		gone.Rejected++
		gone.Bytes += k.Bytes
	}
	return err
}

func (c Collector) collectLedger(ctx context.Context, before time.Time, dry bool, gone *collection) (err error) {
	if before.IsZero() {
		return nil
	}
	if dry {
		aged, err := c.Ledger.CountOver(ctx, before)
		gone.Bodies, gone.Events, gone.Messages = aged.Bodies, aged.Events, aged.Messages
		return err
	}
	drops := []struct {
		count *int
		page  func(tx *ledger.Tx, after int64) (int64, int, error)
	}{
		{&gone.Messages, func(tx *ledger.Tx, after int64) (int64, int, error) { return tx.DropMessages(before, after, page) }},
		{&gone.Bodies, func(tx *ledger.Tx, after int64) (int64, int, error) { return tx.DropBodies(before, after, page) }},
		{&gone.Events, func(tx *ledger.Tx, after int64) (int64, int, error) { return tx.DropEvents(before, after, page) }},
	}
	for _, drop := range drops {
		for next, more := int64(0), true; more; more = next > 0 {
			after, n := next, 0
			err := c.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
				next, n, err = drop.page(tx, after)
				return err
			})
			if err != nil {
				return err
			}
			*drop.count += n
		}
	}
	return nil
}
