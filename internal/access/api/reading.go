package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// maxPage limits the rows of an answer.
const maxPage = 1000

func (b *Records) status(r *http.Request) (any, error) { return b.statusOf(r, b.Ledger.CountOpen) }

// statusOf returns the state of the daemon as the ledger has it.
func (b *Records) statusOf(r *http.Request, countOpen func(context.Context) (map[task.State]int, error)) (client.Status, error) {
	s := client.Status{Root: b.Root, Open: map[string]int{}}
	if b.State != nil {
		s.StateDir = b.State.Path()
	}
	var err error
	if r.URL.Query().Get("brief") == "" {
		counts, err := countOpen(r.Context())
		if err != nil {
			return s, err
		}
		for state, n := range counts {
			s.Open[string(state)] = n
		}
	}
	if s.Paused, err = b.Ledger.Paused(r.Context()); err != nil {
		return s, err
	}
	s.LastEvent, err = b.Ledger.LastEvent(r.Context())
	return s, err
}

func (b *Records) tasks(r *http.Request) (any, error) {
	f, err := filterIn(r)
	if err != nil {
		return nil, err
	}
	asked := f.Limit
	f.Limit = maxPage + 1
	if asked > 0 {
		f.Limit = min(asked, f.Limit)
	}
	tasks, err := b.Tasks(r.Context(), f)
	page := client.Page{Tasks: tasks, More: len(tasks) > maxPage}
	if page.More {
		page.Tasks = tasks[:maxPage]
	}
	return page, err
}

func (b *Records) count(r *http.Request) (any, error) {
	f, err := filterIn(r)
	if err != nil {
		return nil, err
	}
	n, err := b.Count(r.Context(), f)
	return client.Count{Tasks: n}, err
}

// filterIn reads what Filter.Query writes.
func filterIn(r *http.Request) (f client.Filter, err error) {
	q := r.URL.Query()
	f = client.Filter{
		Agent: q.Get("agent"), Requester: q.Get("requester"),
		NewestFirst: q.Get("order") == "newest", All: q.Get("revisions") == "all", CallbackFailed: q.Get("callback") == "failed",
		Kind: envelope.Kind(q.Get("kind")), Type: q.Get("type"), Words: q["word"], Labels: q["label"], Described: q.Get("describe") == "1",
	}
	for _, name := range q["state"] {
		s := task.State(name)
		if !slices.Contains(task.States(), s) {
			return f, bad("state %q is not one of %v", s, task.States())
		}
		f.States = append(f.States, s)
	}
	for _, name := range q["status"] {
		f.Statuses = append(f.Statuses, envelope.Status(name))
	}
	for _, name := range q["reason"] {
		f.Reasons = append(f.Reasons, task.Reason(name))
	}
	for _, label := range f.Labels {
		if _, _, err := envelope.ParseLabel(label); err != nil {
			return f, bad("label %q %w", label, err)
		}
	}
	if since := q.Get("since"); since != "" {
		if f.Since, err = time.Parse(time.RFC3339, since); err != nil {
			return f, bad("since: %w", err)
		}
	}
	if f.After, err = number(r, "after", 0); err != nil {
		return f, err
	}
	limit, err := number(r, "limit", 0)
	f.Limit = int(limit)
	return f, err
}

func (b *Records) ids(r *http.Request) (any, error) {
	ids, err := b.Ledger.Find(r.Context(), r.URL.Query().Get("prefix"))
	return client.Names{IDs: ids}, err
}

func (b *Records) taskDetails(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	return b.Details(r.Context(), id)
}

func (b *Records) askedAbout(r *http.Request) (any, error) {
	named := r.URL.Query()["task"]
	if len(named) > client.MostAsked {
		return nil, bad("task: at most %d at once", client.MostAsked)
	}
	ids := make([]envelope.ID, len(named))
	for i, text := range named {
		id, err := envelope.ParseID(text)
		if err != nil {
			return nil, bad("task %w", err)
		}
		ids[i] = id
	}
	tasks, err := b.Asked(r.Context(), ids)
	return client.AskedTasks{Tasks: tasks}, err
}

func (b *Records) row(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	return b.Latest(r.Context(), id)
}

// request answers with the request of a revision, if it is kept.
func (b *Records) requestOf(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	revision, err := number(r, "revision", 0)
	if err != nil {
		return nil, err
	}
	revisions, err := b.revisions(r.Context(), id)
	if err != nil {
		return nil, err
	}
	row := revisions[len(revisions)-1]
	if revision > 0 {
		at := slices.IndexFunc(revisions, func(t task.Task) bool { return int64(t.Revision) == revision })
		if at < 0 {
			return nil, &client.Error{Kind: client.NoTask, Message: fmt.Sprintf("task %s has no revision %d", id, revision)}
		}
		row = revisions[at]
	}
	raw, err := b.Ledger.Raw(r.Context(), row.Seq)
	if err == nil && !jsontext.Value(raw).IsValid() {
		err = &client.Error{Kind: client.NoTask, Message: fmt.Sprintf("the request of task %s is not JSON", id)}
	}
	return raw, err
}

func (b *Records) below(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	if _, err := b.Latest(r.Context(), id); err != nil {
		return nil, err
	}
	open, err := b.Ledger.OpenBelow(r.Context(), id)
	return client.Page{Tasks: viewsOf(open)}, err
}

func (b *Records) result(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	row, err := b.Latest(r.Context(), id)
	if err != nil {
		return nil, err
	}
	raw, err := mailbox.ReadResult(b.Root, id)
	if errors.Is(err, fs.ErrNotExist) || !row.ResultFinal { // the file answers an earlier revision
		return nil, &client.Error{Kind: client.NoResult, Message: fmt.Sprintf("task %s has no result yet: it is %s", id, row.State)}
	}
	return raw, err
}

func (b *Records) files(r *http.Request) (any, error) {
	files, err := b.Ledger.Files(r.Context())
	cursors := make([]client.Cursor, len(files))
	for i, f := range files {
		cursors[i] = client.Cursor{Path: f.Path, Inode: f.Inode, Offset: f.Offset}
	}
	return client.Cursors{Files: cursors}, err
}

func (b *Records) eventList(r *http.Request) (any, error) {
	id, err := taskIn(r)
	if err != nil {
		return nil, err
	}
	after, err := number(r, "after", 0)
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", maxEvents)
	if err != nil {
		return nil, err
	}
	events, err := b.Events(r.Context(), id, after, int(min(limit, maxEvents)))
	return client.EventList{Events: events}, err
}

// idIn returns the task id in the path.
func idIn(r *http.Request) (envelope.ID, error) {
	id, err := envelope.ParseID(r.PathValue("id"))
	if err != nil {
		return "", bad("task id %w", err)
	}
	return id, nil
}

// taskIn returns the task id in the query, or "".
func taskIn(r *http.Request) (envelope.ID, error) {
	text := r.URL.Query().Get("task")
	if text == "" {
		return "", nil
	}
	id, err := envelope.ParseID(text)
	if err != nil {
		return "", bad("task %w", err)
	}
	return id, nil
}

func number(r *http.Request, key string, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, bad("%s: %q is no number", key, text)
	}
	return n, nil
}

// bad says that a request cannot be understood.
func bad(format string, args ...any) error {
	return &client.Error{Kind: client.BadRequest, Message: fmt.Errorf(format, args...).Error()}
}
