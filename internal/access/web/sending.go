package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// A sending is something that a person sends on the page.
type sending struct {
	Title   string // what it does
	Content string // what is sent, in lines
	do      func(context.Context) (next string, err error)
}

// digest identifies what is sent.
func (one sending) digest() string {
	sum := sha256.Sum256([]byte(one.Title + "\n" + one.Content))
	return hex.EncodeToString(sum[:])
}

// proveSending carries a sending out once it has the proof that an approval by the same person needs, or within
// the time that an earlier proof covers.
func (s *server) proveSending(w http.ResponseWriter, r *http.Request, one sending) {
	session := access.SessionOf(r)
	if !s.opts.Approve {
		s.failWith(w, r, errOff)
		return
	}
	if s.grants.Has(session) {
		next, err := one.do(r.Context())
		if err != nil {
			s.failWith(w, r, err)
			return
		}
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	begun, err := s.beginSending(r.Context(), one, session)
	s.begin(w, r, begun, err)
}

// beginSending asks the daemon which proof a sending needs.
func (s *server) beginSending(ctx context.Context, one sending, session access.Session) (job, error) {
	rd, daemon, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return job{}, err
	}
	defer rd.Close()
	asked, err := daemon.SendingStatement(ctx, one.digest())
	if err != nil {
		return job{}, err
	}
	level, err := task.ParseProofLevel(asked.Needs)
	if err != nil {
		return job{}, err
	}
	begun := newDecision("send", "", "")
	begun.Sends, begun.Signed = one.Title, level > task.ProofTerminal
	begun.Content = term.Escape(one.Content) + "    digest    " + asked.Digest + "\n"
	next := job{decision: begun, asked: asked, do: func(ctx context.Context) error {
		s.grants.Add(session)
		next, err := one.do(ctx)
		s.decisions.setNext(begun, next)
		return err
	}}
	if keys := s.passkeysOf(asked.Passkeys); len(keys) > 0 {
		return s.askPasskey(next, keys), nil
	}
	return next, nil
}

// alsoCovers says what the proof of a sending is good for.
var alsoCovers = fmt.Sprintf("also covers what the page sends in the next %d minutes", int(access.Covered.Minutes()))

// sendConfirmed carries a sending out once its number was typed at the terminal, and the ssh-agent signed it if an approval
// needs that too.
func (s *server) sendConfirmed(ctx context.Context, one job) error {
	question := fmt.Sprintf("mailboxd: the page asks to: %s.\n%s\nThe number %s. It approves nothing.",
		term.OneLine(one.Sends), one.Content, alsoCovers)
	if err := s.terminal.confirm(ctx, strings.ReplaceAll(question, "\n", "\r\n"), one.Number); err != nil {
		return err
	}
	if !one.Signed {
		return one.do(ctx)
	}
	signature, err := reader.Sign(ctx, one.asked)
	if err != nil {
		return err
	}
	return s.sendSigned(ctx, one, signature)
}

// sendSigned carries a sending out once the daemon has verified its signature.
func (s *server) sendSigned(ctx context.Context, one job, signature *client.Signature) error {
	rd, daemon, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return err
	}
	defer rd.Close()
	if err := daemon.ProveSending(ctx, client.Sending{Digest: one.asked.Digest, Asked: one.asked.Asked, Proof: signature}); err != nil {
		return err
	}
	return one.do(ctx)
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
	one, err := retrying(r.Context(), s.opts.Location, daemon, ids[:min(len(ids), mostRetried)])
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	s.proveSending(w, r, one)
}

// retrying is a sending that retries tasks.
func retrying(ctx context.Context, at reader.Location, daemon *client.Client, ids []string) (sending, error) {
	var lines strings.Builder
	var shown []client.Task
	for _, text := range ids {
		id, err := envelope.ParseID(text)
		if err != nil {
			return sending{}, &client.Error{Kind: client.BadRequest, Message: "task: " + err.Error()}
		}
		found, err := daemon.Details(ctx, id)
		if err != nil {
			return sending{}, err
		}
		shown = append(shown, found.Task)
		asked, _ := (&view.Details{TaskDetails: found}).Asked()
		fmt.Fprintf(&lines, "    %s, revision %d, %s: %s\n", id, found.Task.Revision, agentName(found.Task.Agent), term.Cut(term.OneLine(asked.Description), 100))
	}
	title := fmt.Sprintf("Retry %d tasks", len(ids))
	if len(ids) == 1 {
		title = "Retry 1 task"
	}
	return sending{title, lines.String(), func(ctx context.Context) (string, error) {
		return "/tasks?state=open", retryAll(ctx, at, shown)
	}}, nil
}

// retryAll retries tasks, and says which of them it can't.
func retryAll(ctx context.Context, at reader.Location, shown []client.Task) error {
	rd, daemon, err := at.Connect(ctx)
	if err != nil {
		return err
	}
	defer rd.Close()
	var failed []error
	for _, row := range shown {
		err := hasRevision(ctx, daemon, row.ID, row.Revision)
		if err == nil {
			_, err = daemon.Retry(ctx, row.ID, client.ControlOptions{Reason: "on the page"})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", row.ID, err))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	why := fmt.Sprintf("%d of %d are retried; not these: %v", len(shown)-len(failed), len(shown), errors.Join(failed...))
	err = &client.Error{Kind: client.Conflict, Message: why}
	if len(failed) < len(shown) {
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
	s.proveSending(w, r, ifUnchanged(s.opts.Location, found.Task, s.order(one)))
}

// ifUnchanged is a sending that is refused once its task has another revision than the page showed.
func ifUnchanged(at reader.Location, row client.Task, one sending) sending {
	do := one.do
	one.do = func(ctx context.Context) (string, error) {
		rd, daemon, err := at.Connect(ctx)
		if err != nil {
			return "", err
		}
		defer rd.Close()
		if err := hasRevision(ctx, daemon, row.ID, row.Revision); err != nil {
			return "", err
		}
		return do(ctx)
	}
	return one
}

// hasRevision refuses a task that has another revision than the page showed.
func hasRevision(ctx context.Context, daemon *client.Client, id envelope.ID, shown int) error {
	found, err := daemon.Details(ctx, id)
	if err == nil && found.Task.Revision != shown {
		why := fmt.Sprintf("%s has revision %d now, and the page showed %d; look at it again", id, found.Task.Revision, shown)
		err = &client.Error{Kind: client.Conflict, Message: why}
	}
	return err
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
	Grant  bool   // no proof is needed for now
}

// sendForm shows the form that sends a task.
func (s *server) sendForm(ctx context.Context, q question) (page, error) {
	if !s.opts.Approve {
		return page{}, errOff
	}
	known, err := s.opts.Agents(ctx)
	d := sendData{Agents: known, Agent: q.URL.Query().Get("agent"), Grant: s.grants.Has(access.SessionOf(q.Request))}
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
