package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailboxd/internal/client"
	"mailboxd/internal/task"
)

// tasksData is the list of tasks.
type tasksData struct {
	Form   filterForm
	Rows   []row
	States []task.State
	More   string // the URL of the list with more rows; "" for no more
	Total  int
}

// A filterForm has what was asked for in the form of the list.
type filterForm struct {
	State, Agent, Requester, Type, Text, Since string
	Rows                                       int
}

// firstRows is how many rows a list begins with, and mostRows how many it can have.
const (
	firstRows = 100
	mostRows  = 10_000
)

// periods are what can be chosen for since.
var periods = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

func formOf(q url.Values) filterForm {
	f := filterForm{
		State: q.Get("state"), Agent: strings.TrimSpace(q.Get("agent")), Requester: strings.TrimSpace(q.Get("requester")),
		Type: strings.TrimSpace(q.Get("type")), Text: strings.TrimSpace(q.Get("text")), Since: q.Get("since"), Rows: firstRows,
	}
	if n, err := strconv.Atoi(q.Get("rows")); err == nil {
		f.Rows = min(max(n, 1), mostRows)
	}
	return f
}

// Any reports whether the list is restricted.
func (f filterForm) Any() bool {
	return f.State+f.Agent+f.Requester+f.Type+f.Text+f.Since != ""
}

// filter is the form as a question to the daemon. A type is searched for as a word too, and
// compared afterwards.
func (f filterForm) filter(now time.Time) client.Filter {
	c := client.Filter{Agent: f.Agent, Requester: f.Requester, NewestFirst: true, Described: true, Words: strings.Fields(f.Text)}
	if slices.Contains(task.States(), task.State(f.State)) {
		c.States = []task.State{task.State(f.State)}
	}
	if f.State == "open" {
		c.States = task.States()[:len(task.States())-1]
	}
	if f.Type != "" {
		c.Words = append(c.Words, f.Type)
	}
	if d := periods[f.Since]; d > 0 {
		c.Since = now.Add(-d)
	}
	return c
}

// more is the URL of the list with so many rows.
func (f filterForm) more(rows int) string {
	q := url.Values{}
	for key, value := range map[string]string{"state": f.State, "agent": f.Agent, "requester": f.Requester, "type": f.Type, "text": f.Text, "since": f.Since} {
		if value != "" {
			q.Set(key, value)
		}
	}
	q.Set("rows", strconv.Itoa(rows))
	return "/tasks?" + q.Encode()
}

// tasks lists tasks, the newest first.
func (s *server) tasks(ctx context.Context, q question) (page, error) {
	form := formOf(q.URL.Query())
	found, err := form.find(ctx, q)
	if err != nil {
		return page{}, err
	}
	d := tasksData{Form: form, States: task.States()}
	if len(found) > form.Rows {
		found, d.More = found[:form.Rows], form.more(min(form.Rows*2, mostRows))
	}
	if d.Rows, err = s.listed(ctx, q, found); err != nil {
		return page{}, err
	}
	d.Total, err = q.daemon.Count(ctx, client.Filter{})
	return page{Name: "tasks", Title: "Tasks", Data: d}, err
}

// listed adds to tasks what they wait for. A long list has the words that need no details.
func (s *server) listed(ctx context.Context, q question, found []client.Task) ([]row, error) {
	head := found[:min(len(found), firstRows)]
	rows, err := rowsOf(ctx, q, head, nil, s.opts.Approve)
	if err != nil {
		return nil, err
	}
	for _, t := range found[len(head):] {
		rows = append(rows, row{Task: t})
	}
	return rows, nil
}

// find returns the tasks that the form asks for, and one more than it shows.
func (f filterForm) find(ctx context.Context, q question) (found []client.Task, err error) {
	filter := f.filter(q.now)
	for len(found) <= f.Rows {
		filter.Limit = f.Rows + 1 - len(found)
		part, err := q.daemon.Tasks(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, t := range part {
			if f.Type == "" || t.Type == f.Type {
				found = append(found, t)
			}
		}
		if len(part) < filter.Limit {
			return found, nil
		}
		filter.After = part[len(part)-1].Seq
	}
	return found, nil
}
