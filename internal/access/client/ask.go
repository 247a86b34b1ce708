package client

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Base begins the path of every request: the version of what is said.
const Base = "/v1"

// A Filter says which tasks to list. Its zero value lists the latest revision
// of every task, oldest first.
type Filter struct {
	States      []task.State // only these; nil: any
	Agent       string
	Requester   string
	Since       time.Time // only tasks received from then on
	After       int64     // what comes after this seq in the order asked for
	NewestFirst bool
	All         bool // earlier revisions too
	Limit       int  // 0: no limit

	Statuses []envelope.Status // only results with one of these; nil: any
	Kind     envelope.Kind     // of the error of the result
	Type     string
	Reasons  []task.Reason // only tasks that are held for one of these; nil: any

	CallbackFailed bool // only finished tasks whose callback failed

	Words     []string // only tasks with all of these in their id, description, agent, requester, type or labels
	Labels    []string // only tasks with all of these labels, as area=auth
	Described bool     // with the description, the labels and the short id
}

// Searches reports whether the filter looks into requests.
func (f Filter) Searches() bool { return len(f.Words)+len(f.Labels) > 0 }

// Query spells the filter as the query of a request.
func (f Filter) Query() url.Values {
	q := url.Values{}
	for _, s := range f.States {
		q.Add("state", string(s))
	}
	for _, s := range f.Statuses {
		q.Add("status", string(s))
	}
	for _, r := range f.Reasons {
		q.Add("reason", string(r))
	}
	for _, word := range f.Words {
		q.Add("word", word)
	}
	for _, label := range f.Labels {
		q.Add("label", label)
	}
	if f.Described {
		q.Set("describe", "1")
	}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	set("agent", f.Agent)
	set("requester", f.Requester)
	set("kind", string(f.Kind))
	set("type", f.Type)
	if !f.Since.IsZero() {
		q.Set("since", f.Since.Format(time.RFC3339Nano))
	}
	if f.After > 0 {
		q.Set("after", strconv.FormatInt(f.After, 10))
	}
	if f.NewestFirst {
		q.Set("order", "newest")
	}
	if f.All {
		q.Set("revisions", "all")
	}
	if f.CallbackFailed {
		q.Set("callback", "failed")
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// Status asks which daemon this is.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.get(ctx, Base+"/status", nil, &s)
}

// Brief asks which daemon this is, and not for what it would have to count.
func (c *Client) Brief(ctx context.Context) (s Status, err error) {
	return s, c.get(ctx, Base+"/status", url.Values{"brief": {"1"}}, &s)
}

// Tasks lists the tasks that pass the filter, in the order of seq.
func (c *Client) Tasks(ctx context.Context, f Filter) (tasks []Task, err error) {
	for {
		var page Page
		if err := c.get(ctx, Base+"/tasks", f.Query(), &page); err != nil {
			return nil, err
		}
		tasks = append(tasks, page.Tasks...)
		f.Limit -= len(page.Tasks)
		if !page.More || len(page.Tasks) == 0 || f.Limit == 0 {
			return tasks, nil
		}
		f.Limit, f.After = max(f.Limit, 0), page.Tasks[len(page.Tasks)-1].Seq
	}
}

// Count returns how many tasks pass the filter, whatever its After and Limit.
func (c *Client) Count(ctx context.Context, f Filter) (int, error) {
	var count Count
	f.After, f.Limit, f.NewestFirst = 0, 0, false
	err := c.get(ctx, Base+"/count", f.Query(), &count)
	return count.Tasks, err
}

// Find returns the ids that begin with prefix, in byte order; at most 8.
func (c *Client) Find(ctx context.Context, prefix string) ([]envelope.ID, error) {
	var names Names
	err := c.get(ctx, Base+"/ids", url.Values{"prefix": {prefix}}, &names)
	return names.IDs, err
}

// Details returns all that is known of a task.
func (c *Client) Details(ctx context.Context, id envelope.ID) (TaskDetails, error) {
	var f struct {
		TaskDetails
		Older *Conversation `json:"talk"` // what older daemons call the conversation
	}
	err := c.get(ctx, taskPath(id, ""), nil, &f)
	f.Conversation = cmp.Or(f.Conversation, f.Older)
	return f.TaskDetails, err
}

// MostAsked is how many tasks one request for AskedTasks names at most.
const MostAsked = 100

// Asked returns tasks with their descriptions, and what people were asked about each. It leaves out unknown ones.
func (c *Client) Asked(ctx context.Context, ids []envelope.ID) (all []AskedTask, err error) {
	for some := range slices.Chunk(ids, MostAsked) {
		query := url.Values{}
		for _, id := range some {
			query.Add("task", string(id))
		}
		var asked AskedTasks
		if err := c.get(ctx, Base+"/asked", query, &asked); err != nil {
			return nil, err
		}
		all = append(all, asked.Tasks...)
	}
	return all, nil
}

// Latest returns the latest revision of a task.
func (c *Client) Latest(ctx context.Context, id envelope.ID) (t Task, err error) {
	return t, c.get(ctx, taskPath(id, "/row"), nil, &t)
}

// Result returns the bytes of a task's result file.
func (c *Client) Result(ctx context.Context, id envelope.ID) (raw []byte, err error) {
	return raw, c.get(ctx, taskPath(id, "/result"), nil, &raw)
}

// Request returns the request of a revision of a task, as it came; 0 is the latest.
func (c *Client) Request(ctx context.Context, id envelope.ID, revision int) (raw []byte, err error) {
	query := url.Values{}
	if revision > 0 {
		query.Set("revision", strconv.Itoa(revision))
	}
	return raw, c.get(ctx, taskPath(id, "/request"), query, &raw)
}

// Files returns how far the task files were read.
func (c *Client) Files(ctx context.Context) ([]Cursor, error) {
	var files Cursors
	err := c.get(ctx, Base+"/files", nil, &files)
	return files.Files, err
}

// Balances returns the budgets of a day of which something was reserved or
// spent, in the order of their owners.
func (c *Client) Balances(ctx context.Context, day string) ([]Balance, error) {
	var all Balances
	err := c.get(ctx, Base+"/accounts", url.Values{"day": {day}}, &all)
	return all.Balances, err
}

// Paused returns the agents that may start nothing; "" is every agent.
func (c *Client) Paused(ctx context.Context) ([]string, error) {
	status, err := c.Brief(ctx)
	return status.Paused, err
}

func taskPath(id envelope.ID, rest string) string {
	name := url.PathEscape(string(id))
	if name == "." {
		name = "%2E" // a path would lose it
	}
	return Base + "/tasks/" + name + rest
}
