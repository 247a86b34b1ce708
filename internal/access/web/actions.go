package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// An action is something that a person can do about a task on the page.
type action struct {
	Verb  string
	Label string
	Tone  string // main, quiet or bad: how the button looks
	Again bool   // the task can be done once more after a denial
}

// actionsOf returns what can be done about a task. With approve, decisions are among it.
func actionsOf(t client.Task, asked client.Approval, approve bool) (all []action) {
	add := func(verb, label, tone string) { all = append(all, action{Verb: verb, Label: label, Tone: tone}) }
	if approve && view.WaitsForApproval(t) && !asked.Asked.IsZero() && asked.Own != task.SelfRefuse.String() {
		add("approve", "Approve", "main")
		add("deny", "Deny", "bad")
		all[len(all)-1].Again = t.State == task.Review && t.Dialect == ""
	}
	if t.CallbackFailed || task.EndedBy(t.Held, task.Release) {
		add("release", "Release", "main")
	}
	switch {
	case t.State == task.Done && t.Status != envelope.OK && t.Status != envelope.Partial:
		add("retry", "Retry", "main")
	case t.State == task.Done:
	default:
		if (t.State == task.Queued || t.State == task.Held) && !slices.Contains(t.Held, task.Operator) {
			add("hold", "Hold", "quiet")
		}
		add("cancel", "Cancel", "bad")
	}
	return all
}

// controls are what the daemon does for a session. Decisions are not among them.
var controls = map[string]func(*client.Client, context.Context, envelope.ID, client.ControlOptions) (client.Task, error){
	"cancel": (*client.Client).Cancel, "hold": (*client.Client).Hold, "release": (*client.Client).Release, "retry": (*client.Client).Retry,
}

// proven are the actions that need a proof.
var proven = []string{"approve", "deny", "apply", "discard"}

// cancelPatience is how long the page waits for the end of runs.
const cancelPatience = "8s"

// act does something about a task.
func (s *server) act(w http.ResponseWriter, r *http.Request) {
	id, err := envelope.ParseID(idOf(r))
	if err != nil {
		s.fail(w, r, http.StatusNotFound, "There is no such task.")
		return
	}
	verb := r.PathValue("verb")
	rd, daemon, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	defer rd.Close()
	switch do := controls[verb]; {
	case slices.Contains(proven, verb):
		s.decide(w, r, daemon, id)
	case slices.Contains(sent, verb):
		s.sendAbout(w, r, daemon, id)
	case verb == "reply":
		s.reply(w, r, rd, id)
	case do == nil:
		s.fail(w, r, http.StatusNotFound, "There is no such action.")
	default:
		options := client.ControlOptions{Reason: cmp.Or(strings.TrimSpace(r.PostFormValue("reason")), "on the page")}
		if verb == "cancel" {
			options.Timeout = cancelPatience
		}
		if _, err := do(daemon, r.Context(), id, options); err != nil {
			s.failWith(w, r, err)
			return
		}
		back(w, r, taskURL(id))
	}
}

// reply sends a message to the agent of a task.
func (s *server) reply(w http.ResponseWriter, r *http.Request, rd *reader.Reader, id envelope.ID) {
	text := strings.TrimSpace(r.PostFormValue("text"))
	if text == "" {
		s.fail(w, r, http.StatusBadRequest, "The reply is empty.")
		return
	}
	if _, err := rd.Reply(r.Context(), id, text, s.opts.User); err != nil {
		s.failWith(w, r, err)
		return
	}
	back(w, r, taskURL(id))
}

// steer pauses, resumes or drains an agent.
func (s *server) steer(w http.ResponseWriter, r *http.Request) {
	rd, daemon, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	defer rd.Close()
	options := client.AgentOptions{Agent: r.PostFormValue("agent"), Reason: "on the page"}
	switch verb := r.PathValue("verb"); verb {
	case "pause":
		_, err = daemon.Pause(r.Context(), options)
	case "resume":
		_, err = daemon.Resume(r.Context(), options)
	case "drain":
		options.Timeout = cancelPatience
		_, err = daemon.Drain(r.Context(), options)
		if said, late := errors.AsType[*client.Error](err); late && said.Kind == client.Unfinished {
			err = nil // the agent is paused, and the page shows how many of its tasks still run
		}
	default:
		err = &client.Error{Kind: client.NoTask, Message: fmt.Sprintf("there is no action %q", verb)}
	}
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	back(w, r, "/agents")
}

// back returns to the page of a form, or else to another one. It never leaves the page.
func back(w http.ResponseWriter, r *http.Request, otherwise string) {
	to := r.PostFormValue("back")
	if u, err := url.Parse(to); err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, "\\") {
		to = otherwise
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
