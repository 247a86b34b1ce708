package reader

import (
	"cmp"
	"context"
	"slices"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// maxListed limits a list of open tasks. More are not readable, and a million took half
// a minute.
const maxListed = 1000

// pageSize is how many tasks of an unlimited list are in memory.
const pageSize = 1000

// A Query is which tasks to list.
type Query struct {
	client.Filter
	All bool // also finished tasks
}

// A Listing has the tasks of a query, up to a limit.
type Listing struct {
	Tasks []client.Task
	More  int // how many more there are
}

// List returns the finished tasks whose callback failed and the latest finished ones, and
// then the open ones, each oldest first; or what the query asks for, in that order. Of all
// tasks it returns the newest.
func (r *Reader) List(ctx context.Context, q Query) (Listing, error) {
	if q.All {
		return r.newest(ctx, q.Filter)
	}
	done, err := r.latestDone(ctx, q)
	if err != nil {
		return Listing{}, err
	}
	open := q.others()
	tasks, err := r.oldest(ctx, open)
	if err != nil || len(tasks) <= maxListed {
		return Listing{Tasks: append(done, tasks...)}, err
	}
	n, err := r.Client.Count(ctx, open)
	return Listing{append(done, tasks[:maxListed]...), max(0, n-maxListed)}, err
}

// newest returns the newest tasks that pass the filter, oldest first.
func (r *Reader) newest(ctx context.Context, filter client.Filter) (Listing, error) {
	last := filter
	last.Limit, last.NewestFirst = maxListed, true
	tasks, err := r.Tasks(ctx, last)
	slices.Reverse(tasks)
	if err != nil || len(tasks) < maxListed {
		return Listing{Tasks: tasks}, err
	}
	n, err := r.Client.Count(ctx, filter)
	return Listing{tasks, max(0, n-maxListed)}, err
}

// latestDone returns the finished tasks at the beginning of a list: the latest, below older
// ones that need a person since their callback failed.
func (r *Reader) latestDone(ctx context.Context, q Query) ([]client.Task, error) {
	finished := q.Filter
	if len(finished.States) > 0 || q.All {
		return nil, nil
	}
	finished.States, finished.Limit, finished.NewestFirst = []task.State{task.Done}, recent, true
	done, err := r.Tasks(ctx, finished)
	if err == nil && len(done) == recent {
		finished.CallbackFailed, finished.After, finished.Limit = true, done[recent-1].Seq, maxListed
		var failed []client.Task
		failed, err = r.Tasks(ctx, finished)
		// A daemon of an earlier build returns the others too.
		done = append(done, slices.DeleteFunc(failed, func(t client.Task) bool { return !t.CallbackFailed })...)
	}
	slices.Reverse(done)
	return done, err
}

// others returns the filter of the tasks besides the latest finished ones.
func (q Query) others() client.Filter {
	if len(q.States) == 0 && !q.All {
		q.States = view.OpenStates()
	}
	return q.Filter
}

// oldest returns the oldest tasks that pass the filter, and one more than a list has.
// Queued ones come last.
func (r *Reader) oldest(ctx context.Context, filter client.Filter) ([]client.Task, error) {
	filter.Limit = maxListed + 1
	if len(filter.States) == 0 || !slices.Contains(filter.States, task.Queued) {
		return r.Tasks(ctx, filter)
	}
	rest := filter
	rest.States = slices.DeleteFunc(slices.Clone(filter.States), func(s task.State) bool { return s == task.Queued })
	tasks := []client.Task(nil)
	if len(rest.States) > 0 {
		var err error
		if tasks, err = r.Tasks(ctx, rest); err != nil {
			return nil, err
		}
	}
	filter.States, filter.Limit = []task.State{task.Queued}, filter.Limit-len(tasks)
	if filter.Limit == 0 {
		return tasks, nil
	}
	waiting, err := r.Tasks(ctx, filter)
	tasks = append(tasks, waiting...)
	if len(tasks) <= maxListed {
		slices.SortFunc(tasks, func(a, b client.Task) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return tasks, err
}

// Each calls show with all tasks of a query in pages, in the order of List.
func (r *Reader) Each(ctx context.Context, q Query, show func([]client.Task) error) error {
	page, err := r.latestDone(ctx, q)
	if err != nil {
		return err
	}
	if err := show(page); err != nil {
		return err
	}
	filter := q.others()
	for filter.Limit = pageSize; ; filter.After = page[len(page)-1].Seq {
		if page, err = r.Tasks(ctx, filter); err != nil {
			return err
		}
		if err := show(page); err != nil || len(page) < pageSize {
			return err
		}
	}
}

// recent is how many finished tasks a list begins with.
const recent = 20
