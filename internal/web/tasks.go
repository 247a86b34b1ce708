package web

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/task"
	"mailboxd/internal/view"
)

// tasksData is the list of tasks.
type tasksData struct {
	Form   filterForm
	Rows   []row
	States []string        // that can be chosen
	Kinds  []envelope.Kind // of the errors on this page, and the one that is asked for
	Older  string          // the URL of the next page; "" for none
	Found  string          // how many tasks match, in words
	Agent  string          // of the configuration, for the first task; "" for none
}

// A filterForm has what was asked for in the form of the list.
type filterForm struct {
	State, Kind, Agent, Requester, Type, Text, Since string

	After int64 // the last task of the page before; 0: the first page
}

// pageRows is how many rows a page of a list has.
const pageRows = 100

// What can be asked for as a state beside the states of tasks and the statuses of results.
const (
	stateOpen   = "open"   // no result yet
	stateWell   = "well"   // a result that is ok or partial
	stateFailed = "failed" // a result that is neither
)

// statuses are those of results, as far as they can be asked for.
var statuses = []envelope.Status{envelope.OK, envelope.Partial, envelope.Failed, envelope.Rejected, envelope.Stopped}

// periods are what can be chosen for since.
var periods = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

func formOf(q url.Values) filterForm {
	get := func(name string) string { return strings.ToValidUTF8(strings.TrimSpace(q.Get(name)), "\uFFFD") }
	f := filterForm{
		State: get("state"), Kind: get("kind"), Agent: get("agent"), Requester: get("requester"), Type: get("type"), Text: get("text"), Since: get("since"),
	}
	if n, err := strconv.ParseInt(q.Get("after"), 10, 64); err == nil && n > 0 {
		f.After = n
	}
	return f
}

// Any reports whether the list is restricted.
func (f filterForm) Any() bool {
	return f.State+f.Kind+f.Agent+f.Requester+f.Type+f.Text+f.Since != ""
}

// filter is the form as a question to the daemon. A type is searched for as a word too, and
// compared afterwards.
func (f filterForm) filter(now time.Time) client.Filter {
	c := client.Filter{Agent: f.Agent, Requester: f.Requester, NewestFirst: true, Described: true, Words: strings.Fields(f.Text)}
	if slices.Contains(task.States(), task.State(f.State)) {
		c.States = []task.State{task.State(f.State)}
	}
	switch {
	case f.State == stateOpen:
		c.States = view.OpenStates()
	case f.ofResult() || f.Kind != "":
		c.States = []task.State{task.Done}
	}
	if f.Type != "" {
		c.Words = append(c.Words, f.Type)
	}
	if d := periods[f.Since]; d > 0 {
		c.Since = now.Add(-d)
	}
	return c
}

// ofResult reports whether the state that is asked for is one of a result.
func (f filterForm) ofResult() bool {
	return f.State == stateWell || f.State == stateFailed || slices.Contains(statuses, envelope.Status(f.State))
}

// compares reports whether the form asks for what the daemon does not filter.
func (f filterForm) compares() bool { return f.Type+f.Kind != "" || f.ofResult() }

// matches reports whether a task is what the form asks for, of what the daemon does not filter.
func (f filterForm) matches(t client.Task) bool {
	switch {
	case f.Type != "" && t.Type != f.Type, f.Kind != "" && string(t.Kind) != f.Kind:
		return false
	case f.State == stateFailed:
		return failed(t)
	case f.State == stateWell:
		return t.State == task.Done && !failed(t)
	}
	return !f.ofResult() || string(t.Status) == f.State
}

// failed reports whether a task has a result that is neither ok nor partial.
func failed(t client.Task) bool {
	return t.State == task.Done && t.Status != envelope.OK && t.Status != envelope.Partial
}

// older is the URL of the page after a task.
func (f filterForm) older(seq int64) string {
	q := url.Values{}
	for key, value := range map[string]string{
		"state": f.State, "kind": f.Kind, "agent": f.Agent, "requester": f.Requester, "type": f.Type, "text": f.Text, "since": f.Since,
	} {
		if value != "" {
			q.Set(key, value)
		}
	}
	q.Set("after", strconv.FormatInt(seq, 10))
	return "/tasks?" + q.Encode()
}

// tasks lists tasks, the newest first.
func (s *server) tasks(ctx context.Context, q question) (page, error) {
	form := formOf(q.URL.Query())
	found, err := form.find(ctx, q)
	if err != nil {
		return page{}, err
	}
	d := tasksData{Form: form}
	if len(found) > pageRows {
		found = found[:pageRows]
		d.Older = form.older(found[pageRows-1].Seq)
	}
	if d.Rows, err = rowsOf(ctx, q, found, nil, s.opts.Approve); err != nil {
		return page{}, err
	}
	d.addChoices(found)
	total, err := q.daemon.Count(ctx, client.Filter{})
	d.Found = d.count(total)
	if total == 0 {
		d.Agent = s.anyAgent(ctx)
	}
	return page{Name: "tasks", Title: "Tasks", Data: d}, err
}

// addChoices adds what can be chosen in the form.
func (d *tasksData) addChoices(found []client.Task) {
	d.States = []string{stateOpen, stateWell, stateFailed}
	for _, s := range view.OpenStates() {
		d.States = append(d.States, string(s))
	}
	for _, s := range statuses {
		d.States = append(d.States, string(s))
	}
	d.States = append(d.States, string(task.Done))
	kinds := map[envelope.Kind]bool{}
	for _, t := range found {
		kinds[t.Kind] = true
	}
	kinds[envelope.Kind(d.Form.Kind)] = true
	delete(kinds, "")
	d.Kinds = slices.Sorted(maps.Keys(kinds))
}

// count says how many tasks are on the page, of how many.
func (d *tasksData) count(total int) string {
	all := number(int64(total)) + " tasks"
	if total == 1 {
		all = "1 task"
	}
	shown := number(int64(len(d.Rows)))
	switch {
	case d.Form.After > 0:
		return shown + " older of " + all
	case d.Older != "":
		return "The newest " + shown + " of " + all
	case d.Form.Any():
		return shown + " of " + all
	}
	return all
}

// anyAgent is an agent of the configuration; "" if there is none.
func (s *server) anyAgent(ctx context.Context) string {
	if s.opts.Agents == nil {
		return ""
	}
	known, err := s.opts.Agents(ctx)
	if err != nil || len(known) == 0 {
		return "" // the page of agents says why
	}
	return known[0].ID
}

// searched is how many tasks are asked for at a time when the page compares them.
const searched = 1000

// find returns the tasks that the form asks for, and one more than a page shows.
func (f filterForm) find(ctx context.Context, q question) (found []client.Task, err error) {
	filter := f.filter(q.now)
	filter.After = f.After
	for len(found) <= pageRows {
		if filter.Limit = pageRows + 1 - len(found); f.compares() {
			filter.Limit = searched
		}
		part, err := q.daemon.Tasks(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, t := range part {
			if f.matches(t) {
				found = append(found, t)
			}
		}
		if len(part) < filter.Limit {
			break
		}
		filter.After = part[len(part)-1].Seq
	}
	return found[:min(len(found), pageRows+1)], nil
}
