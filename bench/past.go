package main

import (
	"context"
	"os"
)

// A past is a mailbox in which a worker has done many tasks, and the effort of that.
type past struct {
	daemon *daemon
	tasks  int
	took   effort
}

// lived returns the past that all measures share. The first call makes it, and it stays as long
// as the lab.
func (l *lab) lived(ctx context.Context) (*past, error) {
	if l.past != nil {
		return l.past, nil
	}
	count, _ := l.large()
	if err := l.room(uint64(count) * 12 * lineSize); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := l.fresh(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit(count))
	defer cancel()
	h, took, err := l.drain(ctx, dir, resident(16, self, playWorker), count)
	if err != nil {
		return nil, err
	}
	l.past = &past{daemon: h, tasks: count, took: took}
	l.say("  %d tasks done, %.0f a second", count, l.past.took.rate(count))
	return l.past, nil
}
