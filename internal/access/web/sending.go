package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/access"
	"mailboxd/internal/access/web/order"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// covered is how long a number that was typed covers what a session sends.
const covered = 10 * time.Minute

// grants are the sessions that may send without another number. Its zero value has none. No grant
// covers a decision.
type grants struct {
	mu    sync.Mutex // guards until
	until map[string]time.Time
}

// add has a session send until covered is over.
func (g *grants) add(session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil || len(g.until) > 100 {
		g.until = map[string]time.Time{}
	}
	g.until[session] = time.Now().Add(covered).Round(0) // the monotonic clock stops while the machine sleeps
}

// has reports whether a session may send.
func (g *grants) has(session string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return session != "" && time.Now().Before(g.until[session])
}

// A sending is something that a person sends on the page.
type sending struct {
	Title   string // what it does
	Content string // what is sent, in lines
	do      func(context.Context) (next string, err error)
}

// proveSending carries a sending out, once its number was typed at the terminal, or within the time that
// an earlier number covers.
func (s *server) proveSending(w http.ResponseWriter, r *http.Request, one sending) {
	session := access.SessionOf(r).Token
	if !s.opts.Approve {
		s.failWith(w, r, errOff)
		return
	}
	if s.grants.has(session) {
		next, err := one.do(r.Context())
		if err != nil {
			s.failWith(w, r, err)
			return
		}
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	begun := newDecision("send", "", "")
	begun.Sends, begun.Content = one.Title, one.Content
	err := s.decisions.add(job{decision: begun, do: func(ctx context.Context) error {
		question := fmt.Sprintf("mailboxd: the page asks to: %s.\n%s\nThe number also covers what the page sends in the next %d minutes. It approves nothing.",
			term.OneLine(one.Title), term.Escape(one.Content), int(covered.Minutes()))
		if err := s.terminal.confirm(ctx, strings.ReplaceAll(question, "\n", "\r\n"), begun.Number); err != nil {
			return err
		}
		s.grants.add(session)
		next, err := one.do(ctx)
		s.decisions.setNext(begun, next)
		return err
	}})
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	http.Redirect(w, r, "/decisions/"+begun.ID, http.StatusSeeOther)
}

// order is a sending of a command, which prints the id of the task.
func (s *server) order(one order.Order) sending {
	return sending{one.Title, one.Content, func(ctx context.Context) (string, error) {
		said, err := s.opts.Run(ctx, one.Input, one.Args...)
		if err != nil {
			return "", &client.Error{Kind: client.BadRequest, Message: err.Error()}
		}
		words := strings.Fields(said)
		if len(words) == 0 {
			return "/tasks", nil
		}
		id, err := envelope.ParseID(words[len(words)-1])
		if err != nil {
			return "/tasks", nil
		}
		s.awaitTask(ctx, id)
		return taskURL(id), nil
	}}
}

// intakeTime is how long the page waits until the daemon has read the line of a new task.
const intakeTime = 3 * time.Second

// awaitTask waits until the daemon knows a task.
func (s *server) awaitTask(ctx context.Context, id envelope.ID) {
	ctx, stop := context.WithTimeout(ctx, intakeTime)
	defer stop()
	_ = s.opts.Location.Watch(ctx, func(ctx context.Context, r *reader.Reader) error { // the page of the task says what is wrong
		if _, err := r.Latest(ctx, id); err == nil {
			stop()
		}
		return nil
	})
}

// mostRetried is how many failures a person retries at once.
const mostRetried = 200

// retry begins to retry the failures that a person chose in a list.
func (s *server) retry(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || len(r.PostForm["task"]) == 0 {
		s.fail(w, r, http.StatusBadRequest, "Choose the tasks to retry.")
		return
	}
	ids := slices.Compact(slices.Sorted(slices.Values(r.PostForm["task"])))
	rd, daemon, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	defer rd.Close()
	one, err := s.retrying(r.Context(), daemon, ids[:min(len(ids), mostRetried)])
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	s.proveSending(w, r, one)
}

// retrying is a sending that retries tasks.
func (s *server) retrying(ctx context.Context, daemon *client.Client, ids []string) (sending, error) {
	var lines strings.Builder
	for _, text := range ids {
		id, err := envelope.ParseID(text)
		if err != nil {
			return sending{}, &client.Error{Kind: client.BadRequest, Message: "task: " + err.Error()}
		}
		found, err := daemon.Details(ctx, id)
		if err != nil {
			return sending{}, err
		}
		asked, _ := (&view.Details{TaskDetails: found}).Asked()
		fmt.Fprintf(&lines, "    %s, revision %d, %s: %s\n", id, found.Task.Revision, agentName(found.Task.Agent), term.Cut(term.OneLine(asked.Description), 100))
	}
	title := fmt.Sprintf("Retry %d tasks", len(ids))
	if len(ids) == 1 {
		title = "Retry 1 task"
	}
	return sending{title, lines.String(), func(ctx context.Context) (string, error) { return "/tasks?state=open", s.retryAll(ctx, ids) }}, nil
}

// retryAll retries tasks, and says which of them it can't.
func (s *server) retryAll(ctx context.Context, ids []string) error {
	rd, daemon, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return err
	}
	defer rd.Close()
	var failed []error
	for _, id := range ids {
		if _, err := daemon.Retry(ctx, envelope.ID(id), client.ControlOptions{Reason: "on the page"}); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", id, err))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	why := fmt.Sprintf("%d of %d are retried; not these: %v", len(ids)-len(failed), len(ids), errors.Join(failed...))
	err = &client.Error{Kind: client.Conflict, Message: why}
	if len(failed) < len(ids) {
		return errors.Join(errPartly, err)
	}
	return err
}

// errPartly says that a part of what was sent was done.
var errPartly = errors.New("a part was done")

// sent are what a person sends about a task.
var sent = []string{"ask", "copy", "edit", "priority"}

// sendAbout begins to send something about a task.
func (s *server) sendAbout(w http.ResponseWriter, r *http.Request, daemon *client.Client, id envelope.ID) {
	found, err := daemon.Details(r.Context(), id)
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	one, err := orderAbout(r, found)
	if _, said := errors.AsType[*client.Error](err); err != nil && !said {
		err = &client.Error{Kind: client.BadRequest, Message: err.Error()}
	}
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	s.proveSending(w, r, s.order(one))
}

// orderAbout reads a form about a task.
func orderAbout(r *http.Request, found client.TaskDetails) (order.Order, error) {
	id, verb := found.Task.ID, r.PathValue("verb")
	asked, _ := (&view.Details{TaskDetails: found}).Asked()
	switch {
	case verb == "ask":
		return order.FollowUp(id, r.PostForm)
	case verb == "copy":
		return order.Copy(id, asked.Description), nil
	case !canEdit(found):
		return order.Order{}, &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("%s has started or has ended; send a copy instead", id)}
	case r.PostFormValue("revision") != fmt.Sprint(found.Task.Revision):
		return order.Order{}, &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("%s has changed; look at it again", id)}
	case verb == "edit":
		return order.Edit(id, r.PostFormValue("request"))
	}
	text, err := order.WithPriority(found.Request, r.PostFormValue("priority"))
	if err != nil {
		return order.Order{}, err
	}
	return order.Edit(id, text)
}

// canEdit reports whether a task can be changed: it has not started, and its request is kept.
func canEdit(found client.TaskDetails) bool {
	t := found.Task
	return (t.State == task.Queued || t.State == task.Held) && len(found.Runs) == 0 && t.Dialect == "" && len(found.Request) > 0
}

// sendData is the form that sends a task.
type sendData struct {
	Agents []view.Agent
	Agent  string // the one that is chosen
	Grant  bool   // no number is needed for now
}

// sendForm shows the form that sends a task.
func (s *server) sendForm(ctx context.Context, q question) (page, error) {
	if !s.opts.Approve {
		return page{}, errOff
	}
	known, err := s.opts.Agents(ctx)
	d := sendData{Agents: known, Agent: q.URL.Query().Get("agent"), Grant: s.grants.has(access.SessionOf(q.Request).Token)}
	if d.Agent == "" && len(known) > 0 {
		d.Agent = known[0].ID
	}
	return page{Name: "send", Title: "Send a task", Data: d}, err
}

// sendTask begins to send a task.
func (s *server) sendTask(w http.ResponseWriter, r *http.Request) {
	known, err := s.opts.Agents(r.Context())
	if err == nil {
		err = r.ParseForm()
	}
	var ids []string
	for _, a := range known {
		ids = append(ids, a.ID)
	}
	var one order.Order
	if err == nil {
		one, err = order.Ask(r.PostForm, ids)
	}
	if err != nil {
		s.fail(w, r, http.StatusBadRequest, sentence(err.Error()))
		return
	}
	s.proveSending(w, r, s.order(one))
}

// editData is the form that changes a task.
type editData struct {
	ID       envelope.ID
	Revision int
	Request  string
}

// editForm shows the form that changes a task that has not started.
func (s *server) editForm(ctx context.Context, q question) (page, error) {
	id, err := envelope.ParseID(idOf(q.Request))
	if err != nil {
		return page{}, &client.Error{Kind: client.NoTask, Message: "there is no such task"}
	}
	found, err := q.reader.Details(ctx, id)
	if err == nil && !canEdit(found) {
		err = &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("%s has started or has ended; send a copy instead", id)}
	}
	return page{Name: "edit", Title: "Change " + string(id), Data: editData{id, found.Task.Revision, pretty(found.Request)}}, err
}
