package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drained measures a backlog: from the start of the daemon, when all lines are there, to the
// last result file.
func (l *lab) drained(p plan) attempt {
	return func(ctx context.Context, dir string, count int) (effort, error) {
		_, took, err := l.drain(ctx, dir, p, count)
		return took, err
	}
}

// drain does a backlog, and returns the mailbox with all tasks done.
func (l *lab) drain(ctx context.Context, dir string, p plan, count int) (left *daemon, took effort, err error) {
	err = l.served(dir, p, count, func(h *daemon, results *tally) error {
		if err := layBacklog(h.tasks(), count); err != nil {
			return err
		}
		begin := time.Now()
		if err := h.start(ctx); err != nil {
			return err
		}
		err := results.all(ctx, count)
		left, took = h, effort{wall: time.Since(begin), cpu: h.spent()}
		return errors.Join(err, h.stop())
	})
	return left, took, err
}

// streamed measures lines that are appended one by one while the daemon waits: from the first
// line to the last result file.
func (l *lab) streamed(p plan) attempt {
	return func(ctx context.Context, dir string, count int) (took effort, err error) {
		return took, l.served(dir, p, count, func(h *daemon, results *tally) error {
			if err := h.start(ctx); err != nil {
				return err
			}
			err := h.awaitReady(ctx)
			begin := time.Now()
			if err == nil {
				err = appendLines(h.tasks(), 0, count)
			}
			if err == nil {
				err = results.all(ctx, count)
			}
			took.wall = time.Since(begin)
			took.cpu = h.spent()
			return errors.Join(err, h.stop())
		})
	}
}

// served calls do with a mailbox, and verifies all results.
func (l *lab) served(dir string, p plan, count int, do func(*daemon, *tally) error) error {
	h, err := l.newDaemon(dir, p)
	if err != nil {
		return err
	}
	results, err := newTally(h.results(), placed)
	if err != nil {
		return err
	}
	defer results.close()
	if err := do(h, results); err != nil {
		return fmt.Errorf("%w\n%s", err, h.lastWords())
	}
	return verify(h.results(), count)
}
