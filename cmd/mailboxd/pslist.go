package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailboxd/internal/client"
	"mailboxd/internal/task"
)

// mostListed is how many tasks that are not done a list has when nobody asks for
// all. Nobody reads more; a million took half a minute.
const mostListed = 1000

// pageSize is how many tasks are held at once of a list without an end.
const pageSize = 1000

// A listing is what the flags ask for, as much of it as one reads.
type listing struct {
	tasks []client.Task
	more  int // how many more there are
}

// list returns the latest finished tasks, then those that are not done, each
// oldest first; or what the flags ask for, in that order. Of all tasks it returns
// the newest.
func (d *desk) list(ctx context.Context, f *psFlags, now time.Time) (listing, error) {
	if f.all {
		return d.newest(ctx, f.filter(now))
	}
	done, err := d.latestDone(ctx, f, now)
	if err != nil {
		return listing{}, err
	}
	open := f.others(now)
	tasks, err := d.oldest(ctx, open)
	if err != nil || len(tasks) <= mostListed {
		return listing{tasks: append(done, tasks...)}, err
	}
	n, err := d.count(ctx, open)
	return listing{append(done, tasks[:mostListed]...), max(0, n-mostListed)}, err
}

// newest returns the newest tasks that pass the filter, oldest first.
func (d *desk) newest(ctx context.Context, filter client.Filter) (listing, error) {
	last := filter
	last.Limit, last.NewestFirst = mostListed, true
	tasks, err := d.tasks(ctx, last)
	slices.Reverse(tasks)
	if err != nil || len(tasks) < mostListed {
		return listing{tasks: tasks}, err
	}
	n, err := d.count(ctx, filter)
	return listing{tasks, max(0, n-mostListed)}, err
}

// latestDone returns the finished tasks that the list begins with.
func (d *desk) latestDone(ctx context.Context, f *psFlags, now time.Time) ([]client.Task, error) {
	finished := f.filter(now)
	if len(finished.States) > 0 || f.all {
		return nil, nil
	}
	finished.States, finished.Limit, finished.NewestFirst = []task.State{task.Done}, recent, true
	done, err := d.tasks(ctx, finished)
	slices.Reverse(done)
	return done, err
}

// others is what the list has besides: all that the flags ask for.
func (f *psFlags) others(now time.Time) client.Filter {
	filter := f.filter(now)
	if len(filter.States) == 0 && !f.all {
		filter.States = open()
	}
	return filter
}

// oldest returns the oldest tasks that pass the filter, one more than are listed
// if there are. What is queued comes last, for it is all alike.
func (d *desk) oldest(ctx context.Context, filter client.Filter) ([]client.Task, error) {
	filter.Limit = mostListed + 1
	if len(filter.States) == 0 || !slices.Contains(filter.States, task.Queued) {
		return d.tasks(ctx, filter)
	}
	rest := filter
	rest.States = slices.DeleteFunc(slices.Clone(filter.States), func(s task.State) bool { return s == task.Queued })
	tasks := []client.Task(nil)
	if len(rest.States) > 0 {
		var err error
		if tasks, err = d.tasks(ctx, rest); err != nil {
			return nil, err
		}
	}
	filter.States, filter.Limit = []task.State{task.Queued}, filter.Limit-len(tasks)
	if filter.Limit == 0 {
		return tasks, nil
	}
	waiting, err := d.tasks(ctx, filter)
	tasks = append(tasks, waiting...)
	if len(tasks) <= mostListed {
		slices.SortFunc(tasks, func(a, b client.Task) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return tasks, err
}

// each hands on all that the flags ask for, in the order of list, a page at a
// time.
func (d *desk) each(ctx context.Context, f *psFlags, now time.Time, show func([]client.Task) error) error {
	page, err := d.latestDone(ctx, f, now)
	if err != nil {
		return err
	}
	if err := show(page); err != nil {
		return err
	}
	filter := f.others(now)
	for filter.Limit = pageSize; ; filter.After = page[len(page)-1].Seq {
		if page, err = d.tasks(ctx, filter); err != nil {
			return err
		}
		if err := show(page); err != nil || len(page) < pageSize {
			return err
		}
	}
}
