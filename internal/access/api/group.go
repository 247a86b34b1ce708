package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// groupRoutes is all that approvers of a group can ask for at their socket: the tasks that wait
// for their own decision, and the decision. Every other request is answered as one that doesn't
// exist.
func (d *Server) groupRoutes() []route {
	allowed := []route{
		{"GET", "/status", "The version of the daemon.", "", nil, client.Status{}, d.groupStatus},
		{"GET", "/tasks", "The tasks that wait for a decision of the caller.", "", nil, client.Page{}, d.groupTasks},
		{"GET", "/count", "How many tasks wait for a decision of the caller.", "", nil, client.Count{}, d.groupCount},
		{"GET", "/ids", "Ids that begin with a text, of tasks that wait for a decision of the caller.", "prefix", nil, client.Names{}, d.groupIDs},
		{"GET", "/tasks/{id}", "All that is known of a task.", "", nil, client.TaskDetails{}, d.markingOwn(d.records.taskDetails)},
		{"GET", "/tasks/{id}/row", "The latest revision of a task.", "", nil, client.Task{}, d.records.row},
	}
	allowed = append(allowed, d.decisions()...)
	for i, r := range allowed {
		if strings.Contains(r.path, "{id}") {
			allowed[i].do = func(request *http.Request) (any, error) {
				if err := d.requireTheirs(request); err != nil {
					return nil, err
				}
				return r.do(request)
			}
		}
	}
	return allowed
}

// groupStatus says that the daemon is there, and nothing of its mailbox.
func (d *Server) groupStatus(*http.Request) (any, error) {
	return client.Status{Version: d.opts.Version, Started: d.opened, Open: map[string]int{}}, nil
}

// groupTasks lists the tasks that the caller may decide about.
func (d *Server) groupTasks(r *http.Request) (any, error) {
	f, err := filterIn(r)
	if err != nil {
		return nil, err
	}
	tasks, err := d.theirs(r.Context(), f)
	return client.Page{Tasks: tasks}, err
}

func (d *Server) groupCount(r *http.Request) (any, error) {
	f, err := filterIn(r)
	if err != nil {
		return nil, err
	}
	f.After, f.Limit = 0, 0
	tasks, err := d.theirs(r.Context(), f)
	return client.Count{Tasks: len(tasks)}, err
}

// theirs returns the tasks that pass the filter and that the caller may decide about.
func (d *Server) theirs(ctx context.Context, f client.Filter) (all []client.Task, err error) {
	limit := f.Limit
	f.States, f.Limit, f.NewestFirst = askable(f.States), maxPage, false
	if len(f.States) == 0 {
		return nil, nil
	}
	for {
		page, err := d.records.Tasks(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			if t.State == task.Held && t.Revision == 1 && !task.EndedBy(t.Held, task.Decide) {
				continue // an earlier revision of another task may be in review
			}
			if may, err := d.mayDecide(ctx, t.ID); err != nil {
				return nil, err
			} else if may {
				all = append(all, t)
			}
		}
		if limit > 0 && len(all) >= limit {
			return all[:limit], nil
		}
		if len(page) < maxPage {
			return all, nil
		}
		f.After = page[len(page)-1].Seq
	}
}

// askable returns the states among the wanted ones, or else all, in which a task may wait for a
// decision.
func askable(wanted []task.State) (states []task.State) {
	for _, s := range []task.State{task.Held, task.Review} {
		if len(wanted) == 0 || slices.Contains(wanted, s) {
			states = append(states, s)
		}
	}
	return states
}

func (d *Server) groupIDs(r *http.Request) (any, error) {
	ids, err := d.records.Ledger.Find(r.Context(), r.URL.Query().Get("prefix"))
	var shown []envelope.ID
	for _, id := range ids {
		if may, err := d.mayDecide(r.Context(), id); err != nil {
			return nil, err
		} else if may {
			shown = append(shown, id)
		}
	}
	return client.Names{IDs: shown}, err
}

// requireTheirs refuses a request about a task that the caller may not decide about. It doesn't
// say whether there is such a task.
func (d *Server) requireTheirs(r *http.Request) error {
	id, err := idIn(r)
	if err != nil {
		return err
	}
	may, err := d.mayDecide(r.Context(), id)
	if err == nil && !may {
		err = &client.Error{Kind: client.NoTask, Message: "no task " + string(id) + " waits for your decision"}
	}
	return err
}

// mayDecide reports whether the caller may decide about a task now.
func (d *Server) mayDecide(ctx context.Context, id envelope.ID) (bool, error) {
	row, asked, _, err := d.engine.Question(ctx, "approve", id, "")
	_, decided := errors.AsType[*core.StateError](err)
	switch {
	case decided, errors.Is(err, ledger.ErrUnknown):
		return false, nil
	case err != nil:
		return false, err
	}
	return d.approver(peerIn(ctx)).Forbidden(row, asked.Approver) == "", nil
}
