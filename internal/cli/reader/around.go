package reader

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// WaitContext reads what the words about the waits of tasks need.
func (r *Reader) WaitContext(ctx context.Context, tasks []client.Task, now time.Time) (view.WaitContext, error) {
	return r.WaitContextOf(ctx, tasks, nil, now)
}

// WaitContextOf is WaitContext for tasks of which some details were read before.
func (r *Reader) WaitContextOf(ctx context.Context, tasks []client.Task, known map[envelope.ID]client.TaskDetails, now time.Time) (view.WaitContext, error) {
	s := view.WaitContext{
		Now: now, Served: r.served, Began: map[envelope.ID]time.Time{}, Asked: map[envelope.ID]client.Approval{},
		Doing: map[envelope.ID]string{}, Quoted: map[envelope.ID]string{},
	}
	var err error
	if view.HasState(tasks, task.Queued) {
		if s.Ahead, err = r.queue(ctx, tasks); err != nil {
			return s, err
		}
	}
	if slices.ContainsFunc(tasks, view.MayBePaused) {
		if s.Paused, err = r.Client.Paused(ctx); err != nil {
			return s, err
		}
	}
	if known, err = r.askedOf(ctx, tasks, known); err != nil {
		return s, err
	}
	for _, t := range tasks {
		if len(s.Began)+len(s.Asked)+len(s.Quoted) == maxDetails {
			break
		}
		if err := r.addDetails(ctx, t, known, s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// askedOf adds to known details what people were asked about the tasks that only wait for that.
func (r *Reader) askedOf(
	ctx context.Context, tasks []client.Task, known map[envelope.ID]client.TaskDetails,
) (map[envelope.ID]client.TaskDetails, error) {
	var ids []envelope.ID
	for _, t := range tasks {
		_, isKnown := known[t.ID]
		if !isKnown && len(ids) < maxDetails && t.State != task.Running && view.WaitsForApproval(t) && !view.Quotes(t) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return known, nil
	}
	all, err := r.Asked(ctx, ids)
	if err == nil {
		maps.Copy(all, known)
	}
	return all, err
}

// Feed prints a line for each task.
func (r *Reader) Feed(ctx context.Context, tasks []client.Task, now time.Time, s term.Screen) error {
	around, err := r.WaitContext(ctx, tasks, now)
	if err != nil {
		return err
	}
	return around.Feed(tasks, s)
}

// maxDetails limits how many tasks of a list are read in detail.
const maxDetails = 200

// addDetails reads the start of a running task, or the pending approval of a held one, or what
// its last run said.
func (r *Reader) addDetails(ctx context.Context, t client.Task, known map[envelope.ID]client.TaskDetails, s view.WaitContext) error {
	running := t.State == task.Running || t.State == task.Waiting
	if !running && !view.WaitsForApproval(t) && !view.Quotes(t) {
		return nil
	}
	found, isKnown := known[t.ID]
	if !isKnown {
		var err error
		if found, err = r.Details(ctx, t.ID); err != nil {
			return err
		}
	}
	file := &view.Details{TaskDetails: found}
	switch {
	case view.Quotes(t):
		s.Quoted[t.ID] = file.Reason()
	case view.WaitsForApproval(t): // also a running one, with a call
		s.Began[t.ID], s.Asked[t.ID] = file.Began(), file.PendingApproval()
	case running:
		s.Began[t.ID], s.Doing[t.ID] = file.Began(), doing(file)
	}
	return nil
}

// doing is how far a running task is, as far as its agent says: the progress that it
// reported, and otherwise the last line that it wrote.
func doing(file *view.Details) string {
	percent, note := file.Progress()
	if note == "" && file.Task.State == task.Running {
		note = lastLine(file.TaskDetails)
	}
	return strings.TrimSpace(percent + " " + note)
}

// queue returns how many queued tasks of the same agent are before each task, at most
// view.MaxAhead. An agent takes the highest priority first, then the oldest. In a longer queue,
// the number for a task with a priority is too low or unknown.
func (r *Reader) queue(ctx context.Context, tasks []client.Task) (map[envelope.ID]int, error) {
	ahead, long := map[envelope.ID]int{}, map[string]bool{}
	for _, t := range tasks {
		if t.State != task.Queued {
			continue
		}
		if _, done := long[t.Agent]; !done {
			first, err := r.Tasks(ctx, client.Filter{States: []task.State{task.Queued}, Agent: t.Agent, Limit: view.MaxAhead})
			if err != nil {
				return nil, err
			}
			slices.SortFunc(first, func(a, b client.Task) int { return position(a).Compare(position(b)) })
			for n, before := range first {
				ahead[before.ID] = n
			}
			long[t.Agent] = len(first) == view.MaxAhead
		}
		if _, near := ahead[t.ID]; !near && long[t.Agent] && t.Priority <= 0 {
			ahead[t.ID] = view.MaxAhead
		}
	}
	return ahead, nil
}

func position(t client.Task) task.Position { return task.Position{Seq: t.Seq, Priority: t.Priority} }
