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
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
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

// failures are the statuses of results that are neither ok nor partial.
var failures = []envelope.Status{envelope.Failed, envelope.Rejected, envelope.Stopped}

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

// filter is the form as a question to the daemon.
func (f filterForm) filter(now time.Time) client.Filter {
	c := client.Filter{
		Agent: f.Agent, Requester: f.Requester, Type: f.Type, Kind: envelope.Kind(f.Kind), Words: strings.Fields(f.Text),
		NewestFirst: true, Described: true,
	}
	if slices.Contains(task.States(), task.State(f.State)) {
		c.States = []task.State{task.State(f.State)}
	}
	switch {
	case f.State == stateOpen:
		c.States = view.OpenStates()
	case f.State == stateWell:
		c.Statuses = []envelope.Status{envelope.OK, envelope.Partial}
	case f.State == stateFailed:
		c.Statuses = failures
	case slices.Contains(statuses, envelope.Status(f.State)):
		c.Statuses = []envelope.Status{envelope.Status(f.State)}
	}
	if c.States == nil && (c.Statuses != nil || f.Kind != "") {
		c.States = []task.State{task.Done}
	}
	if d := periods[f.Since]; d > 0 {
		c.Since = now.Add(-d)
	}
	return c
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
	filter := form.filter(q.now)
	filter.After, filter.Limit = form.After, pageRows+1
	found, err := q.daemon.Tasks(ctx, filter)
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
	total := len(d.Rows)
	if part := d.Older != "" || form.After > 0; part && filter.Searches() {
		total = -1 // to count them, the daemon reads each request
	} else if part {
		total, err = q.daemon.Count(ctx, filter)
	}
	d.Found = d.count(total)
	if total == 0 && !form.Any() {
		d.Agent = s.anyAgent(ctx)
	}
	return page{Name: "tasks", Title: "Tasks", Data: &d}, err
}

// Retries reports whether a task of the page can be retried.
func (d *tasksData) Retries() bool { return slices.ContainsFunc(d.Rows, row.Retries) }

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

// count says how many tasks are on the page, of how many; negative: nobody counted them.
func (d *tasksData) count(total int) string {
	shown, all, matching := number(int64(len(d.Rows))), number(int64(total))+" tasks", ""
	if total == 1 {
		all = "1 task"
	}
	switch {
	case d.Form.Any() && total == 1:
		matching = " that matches"
	case d.Form.Any():
		matching = " that match"
	}
	switch {
	case total < 0 && d.Form.After > 0:
		return shown + " older tasks" + matching
	case total < 0:
		return "The newest " + shown + " tasks" + matching
	case d.Form.After > 0:
		return shown + " older of " + all + matching
	case d.Older != "":
		return "The newest " + shown + " of " + all + matching
	}
	return all + matching
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
