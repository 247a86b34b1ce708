package retention

import (
	"context"
	"slices"
	"time"

	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
)

// publishing is the longest time between an artifact and its record in the ledger.
const publishing = time.Hour

// collectArtifacts removes the artifacts that no task with a kept request published or names. One of
// which the ledger knows nothing is removed when it is as old as a run directory that is removed:
// a person put it, its run was lost, or the ledger was.
func (c Collector) collectArtifacts(ctx context.Context, old, now time.Time, dry bool, gone *collection) error {
	if c.Artifacts == nil {
		return nil
	}
	latest := now.Add(-publishing)
	if !dry {
		if err := c.Artifacts.Sweep(latest); err != nil {
			return err
		}
	}
	for e, err := range c.Artifacts.All() {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			gone.leave("artifacts", err)
			continue
		}
		if err := c.collectArtifact(ctx, e, old, latest, dry, gone); err != nil {
			return err
		}
	}
	return nil
}

// collectArtifact removes an artifact that no task needs.
func (c Collector) collectArtifact(ctx context.Context, e artifact.Entry, old, latest time.Time, dry bool, gone *collection) error {
	tasks, err := c.Ledger.Artifacts(ctx, e.Digest)
	if err != nil || slices.ContainsFunc(tasks, func(a ledger.Artifact) bool { return a.Retained }) {
		return err
	}
	before := latest
	if !slices.ContainsFunc(tasks, func(a ledger.Artifact) bool { return a.Published }) && old.Before(before) {
		before = old
	}
	removed, err := c.Artifacts.Remove(e.Digest, before, dry)
	if err != nil {
		gone.leave("artifacts", err)
		return nil
	}
	if !removed {
		return nil
	}
	gone.Files++
	gone.Bytes += e.Size
	if dry {
		return nil
	}
	return c.Ledger.Update(ctx, func(tx *ledger.Tx) error { return tx.ForgetArtifact(e.Digest) })
}
