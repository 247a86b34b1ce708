package daemon

import (
	"context"
	"time"

	"mailboxd/internal/running/host"
)

// unmapAfter is how long after a change pages are unmapped. Mapping the needed ones
// again takes some milliseconds.
const unmapAfter = 10 * time.Second

// unmapWhenIdle unmaps the pages of the program file at the start, and unmapAfter after each change, until ctx
// ends.
func unmapWhenIdle(ctx context.Context, ready <-chan struct{}, changed func() <-chan struct{}) error {
	return unmapAtRest(ctx, ready, changed, host.UnmapProgram)
}

func unmapAtRest(ctx context.Context, ready <-chan struct{}, changed func() <-chan struct{}, unmap func()) error {
	select {
	case <-ctx.Done():
	case <-ready:
	}
	for ctx.Err() == nil {
		change := changed()
		unmap()
		select {
		case <-ctx.Done():
		case <-change:
			pause(ctx, unmapAfter)
		}
	}
	return nil
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
