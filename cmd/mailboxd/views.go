package main

import (
	"context"

	"mailboxd/internal/client"
)

// tasks lists the tasks that pass the filter.
func (d *desk) tasks(ctx context.Context, f client.Filter) ([]client.Task, error) {
	if d.books == nil {
		return nil, nil
	}
	return d.books.Tasks(ctx, f)
}

// count returns how many tasks pass the filter.
func (d *desk) count(ctx context.Context, f client.Filter) (int, error) {
	if d.books == nil {
		return 0, nil
	}
	return d.books.Count(ctx, f)
}

// paused returns the agents that may start nothing; "" is every agent.
func (d *desk) paused(ctx context.Context) ([]string, error) {
	if d.books == nil {
		return nil, nil
	}
	return d.books.Paused(ctx)
}
