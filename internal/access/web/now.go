package web

import (
	"context"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// A row is a task in a list, with what it waits for.
type row struct {
	client.Task
	Wait    string // what it waits for
	Next    string // what a person can do, in words
	Doing   string // how far its agent is
	Began   time.Time
	Budget  string // what its run may cost
	Asked   client.Approval
	Patch   string // the digest of the patch that is shown with an answer; "" for none
	Actions []action
}

// Retries reports whether the task can be retried.
func (r row) Retries() bool {
	return slices.ContainsFunc(r.Actions, func(a action) bool { return a.Verb == "retry" })
}

// Asks reports whether the agent of the task asked a question.
func (r row) Asks() bool { return task.EndedBy(r.Held, task.Answer) }

// nowData is what the first page shows.
type nowData struct {
	Waiting []row // for a person
	Running []row
	Fetched []row  // in an inbox: their agent fetches them, or has fetched them
	Failed  []row  // the latest of the last day
	Agent   string // of the configuration, for the first task; "" for none
	Faults  []client.Fault
	Paused  []string
	Counts  []count
	Done    int // in the last hour
	Bad     int // in the last hour, without success
	Chart   chart
	Empty   bool // there is no task at all
	Later   int  // tasks that wait for something else
	More    int  // tasks that wait for a person and are not listed
	Runs    int  // tasks that run, of which Running has the first
	Inbox   int  // tasks in an inbox, of which Fetched has the first
}

// A count is how many tasks are in a state.
type count struct {
	State task.State
	N     int
}

// mostShown is how many tasks a part of the first page lists.
const mostShown = 20

// mostRunning is how many running tasks are searched for those that wait for nobody.
const mostRunning = 1000

// now shows what needs a person, and what runs.
func (s *server) now(ctx context.Context, q question) (page, error) {
	open := func(state task.State) int { return q.status.Open[string(state)] }
	d := nowData{
		Faults: q.status.Faults, Paused: q.status.Paused,
		Later: max(0, open(task.Held)-q.waits.Held), Runs: max(0, open(task.Running)-q.waits.Running), Inbox: open(task.Waiting),
	}
	for _, state := range view.OpenStates() {
		d.Counts = append(d.Counts, count{state, open(state)})
	}
	if err := d.addOpen(ctx, q, s.opts.Approve); err != nil {
		return page{}, err
	}
	var err error
	if d.Chart, d.Done, d.Bad, err = s.activity.chart(ctx, q.reader, q.now); err != nil {
		return page{}, err
	}
	newest, err := q.reader.Tasks(ctx, client.Filter{Limit: 1})
	if err != nil {
		return page{}, err
	}
	if d.Empty = len(newest) == 0; d.Empty {
		d.Agent = s.anyAgent(ctx)
	}
	return page{Name: "now", Title: "Now", Data: d}, d.addFailed(ctx, q, s.opts.Approve)
}

// mostFailed is how many failures the first page lists, and lately is how old they may be.
const (
	mostFailed = 5
	lately     = 24 * time.Hour
)

// addFailed adds the latest tasks that ended without success.
func (d *nowData) addFailed(ctx context.Context, q question, approve bool) error {
	filter := client.Filter{States: []task.State{task.Done}, Statuses: failures, Since: q.now.Add(-lately), NewestFirst: true, Described: true, Limit: mostFailed}
	found, err := q.daemon.Tasks(ctx, filter)
	if err != nil {
		return err
	}
	d.Failed, err = rowsOf(ctx, q, found, nil, approve)
	return err
}

// addOpen adds the tasks that wait for a person, and those that run.
func (d *nowData) addOpen(ctx context.Context, q question, approve bool) error {
	waiting, err := mostUrgent(ctx, q)
	if err != nil {
		return err
	}
	d.More = max(0, q.waits.all()-len(waiting))
	if d.Waiting, err = waitingRows(ctx, q, waiting, approve); err != nil {
		return err
	}
	shown := client.Filter{States: []task.State{task.Running}, Described: true, Limit: min(mostShown+q.waits.Running, mostRunning)}
	running, err := q.reader.Tasks(ctx, shown)
	if err != nil {
		return err
	}
	running = slices.DeleteFunc(running, needsPerson)
	if d.Running, err = openRows(ctx, q, running[:min(len(running), mostShown)], approve); err != nil {
		return err
	}
	fetched, err := q.reader.Tasks(ctx, client.Filter{States: []task.State{task.Waiting}, Described: true, Limit: mostShown})
	if err != nil {
		return err
	}
	d.Fetched, err = openRows(ctx, q, fetched, approve)
	return err
}

// openRows describes tasks that are with an agent, and adds what their runs may cost.
func openRows(ctx context.Context, q question, tasks []client.Task, approve bool) ([]row, error) {
	known, err := detailsOf(ctx, q.reader, tasks)
	if err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, q, tasks, known, approve)
	for i, r := range rows {
		rows[i].Budget = spentOf(known[r.ID])
	}
	return rows, err
}

// detailsOf reads the details of tasks that are shown.
func detailsOf(ctx context.Context, r *reader.Reader, tasks []client.Task) (map[envelope.ID]client.TaskDetails, error) {
	known := make(map[envelope.ID]client.TaskDetails, len(tasks))
	for _, t := range tasks {
		found, err := r.Details(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		known[t.ID] = found
	}
	return known, nil
}

// waitingRows describes tasks, and adds what they wait for. A list with descriptions reads each request, so it is only for
// the tasks that are shown.
func waitingRows(ctx context.Context, q question, waiting []client.Task, approve bool) ([]row, error) {
	ids := make([]envelope.ID, len(waiting))
	for i, t := range waiting {
		ids[i] = t.ID
	}
	asked, err := q.reader.Asked(ctx, ids)
	if err != nil {
		return nil, err
	}
	known := map[envelope.ID]client.TaskDetails{}
	for i, t := range waiting {
		found := asked[t.ID]
		waiting[i].Description, waiting[i].Labels, waiting[i].ShortID = found.Task.Description, found.Labels, found.Task.ShortID
		if t.State != task.Running && !view.Quotes(t) {
			known[t.ID] = found
		}
	}
	return rowsOf(ctx, q, waiting, known, approve)
}

// waiters are how many tasks wait for a person, by where they are.
type waiters struct{ Review, Held, Running, Lost int }

// all returns how many wait.
func (w waiters) all() int { return w.Review + w.Held + w.Running + w.Lost }

// waitFilters find the tasks that wait for a person, as needsPerson has it: each count of waiters has one.
func waitFilters() []client.Filter {
	return []client.Filter{
		{States: []task.State{task.Review}},
		{States: []task.State{task.Held}, Reasons: personReasons()},
		{States: []task.State{task.Running}, Reasons: personReasons()},
		{States: []task.State{task.Done}, CallbackFailed: true},
	}
}

// waitersIn counts the tasks that wait for a person, where there are open ones.
func waitersIn(ctx context.Context, daemon *client.Client, open map[string]int) (w waiters, err error) {
	counts := []*int{&w.Review, &w.Held, &w.Running, &w.Lost}
	for i, filter := range waitFilters() {
		if state := filter.States[0]; state != task.Done && open[string(state)] == 0 {
			continue
		}
		if *counts[i], err = daemon.Count(ctx, filter); err != nil {
			return waiters{}, err
		}
	}
	return w, nil
}

// personReasons returns the reasons that only a person ends.
func personReasons() (reasons []task.Reason) {
	for _, f := range task.FactsOf(task.Reasons()) {
		if f.NeedsPerson {
			reasons = append(reasons, f.Reason)
		}
	}
	return reasons
}

// needsPerson reports whether a task waits for a person.
func needsPerson(t client.Task) bool {
	return t.State == task.Review || t.CallbackFailed || slices.ContainsFunc(t.Held, func(r task.Reason) bool { return r.Facts().NeedsPerson })
}

// mostUrgent returns the tasks that wait for a person and are shown, in the order of urgencies.
func mostUrgent(ctx context.Context, q question) (waiting []client.Task, err error) {
	known := map[envelope.ID]bool{}
	for _, filter := range urgencies() {
		if len(waiting) >= min(mostShown, q.waits.all()) {
			break
		}
		filter.Limit = mostShown
		found, err := q.reader.Tasks(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if !known[t.ID] {
				known[t.ID], waiting = true, append(waiting, t)
			}
		}
	}
	return waiting[:min(len(waiting), mostShown)], nil
}

// urgencies find the same tasks as waitFilters, in the order of the reasons.
func urgencies() (filters []client.Filter) {
	for _, f := range task.FactsOf(task.Reasons()) {
		switch {
		case !f.NeedsPerson:
			continue
		case f.Action == task.Decide:
			filters = append(filters, client.Filter{States: []task.State{task.Review}})
		}
		filters = append(filters, client.Filter{States: []task.State{task.Held, task.Running}, Reasons: []task.Reason{f.Reason}})
	}
	return append(filters, client.Filter{States: []task.State{task.Done}, CallbackFailed: true})
}

// rowsOf adds to tasks what they wait for. The details of some may be known.
func rowsOf(ctx context.Context, q question, tasks []client.Task, known map[envelope.ID]client.TaskDetails, approve bool) ([]row, error) {
	around, err := q.reader.WaitContextOf(ctx, tasks, known, q.now)
	if err != nil {
		return nil, err
	}
	around.ShortIDs = true
	rows := make([]row, len(tasks))
	for i, t := range tasks {
		asked := around.Asked[t.ID]
		rows[i] = row{
			Task: t, Wait: around.Wait(t), Next: around.Next(t), Doing: around.Doing[t.ID], Began: around.Began[t.ID],
			Asked: asked, Actions: actionsOf(t, asked, approve),
		}
	}
	return rows, nil
}
