package differential_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// soon is the time within which a thing that happens by itself is waited for.
const soon = 10 * time.Second

// emptyLines is the file into which settle writes.
const emptyLines = "box/tasks/empty.jsonl"

// settle waits until nothing more happens by itself: all lines were read, each task is
// done or waits for something that only a later step does, and all messages are in
// their inboxes. It looks twice, with no event between. Between the looks an empty line
// has to be read: by then what follows from the lines before it was done.
func (s *site) settle(ctx context.Context, l limits) error {
	var last int64 = -1
	why := ""
	err := s.await(ctx, "the mailbox to settle", func() (bool, error) {
		var now status
		if err := s.get(ctx, "/v1/status", &now); err != nil {
			return false, fmt.Errorf("the daemon does not answer: %w\n%s", err, s.log())
		}
		var err error
		if why, err = s.unsettled(ctx, l, now); why != "" || err != nil {
			last = -1
			return false, err
		}
		if now.LastEvent == last {
			return true, nil
		}
		last = now.LastEvent
		return false, s.append(filepath.Base(emptyLines), "\n")
	})
	if err != nil && why != "" {
		err = fmt.Errorf("%w; %s", err, why)
	}
	return err
}

func (s *site) log() string {
	text, _ := os.ReadFile(s.path("log"))
	return string(text)
}

// unsettled returns what still happens, "" for nothing.
func (s *site) unsettled(ctx context.Context, l limits, now status) (string, error) {
	if why, err := s.unread(ctx); why != "" || err != nil {
		return why, err
	}
	var all page
	if err := s.get(ctx, "/v1/tasks?limit=1000", &all); err != nil {
		return "", err
	}
	look := looked{site: s, limits: l, status: now, tasks: all.Tasks}
	for _, t := range all.Tasks {
		if why := look.moves(t); why != "" {
			return fmt.Sprintf("task %s is %s %v, %s", t.ID, t.State, t.Held, why), nil
		}
	}
	for _, t := range all.Tasks {
		if t.Dialect == "" && t.Depth == 0 && t.State != "review" || t.State == "done" && s.over[t.ID] == t.Revision {
			continue
		}
		var file taskDetails
		if err := s.get(ctx, "/v1/tasks/"+url.PathEscape(t.ID), &file); err != nil {
			return "", err
		}
		file.Conversation = cmp.Or(file.Conversation, file.Older)
		if why := look.tells(t, file); why != "" {
			return fmt.Sprintf("task %s is %s %v, %s", t.ID, t.State, t.Held, why), nil
		}
		if t.State == "done" {
			s.over[t.ID] = t.Revision
		}
	}
	return s.undelivered(ctx)
}

// undelivered tells which conversation has a message that is not in its inbox.
func (s *site) undelivered(ctx context.Context) (string, error) {
	for id := range s.threads {
		code, text, err := s.ask(ctx, http.MethodGet, "/v1/thread?id="+url.QueryEscape(id), "")
		if err != nil {
			return "", err
		}
		var thread struct {
			Messages []message `json:"messages"`
		}
		if code == http.StatusNotFound {
			continue // nobody has said anything there
		}
		if err := json.Unmarshal(text, &thread); err != nil {
			return "", err
		}
		if why := due(thread.Messages); why != "" {
			return fmt.Sprintf("conversation %s: %s", id, why), nil
		}
	}
	return "", nil
}

// due tells which message is not in its inbox.
func due(messages []message) string {
	for _, m := range messages {
		if m.Inbox != "" && m.Posted.IsZero() {
			return "a message is not in " + m.Inbox
		}
	}
	return ""
}

// unread tells which task file has whole lines that were not read.
func (s *site) unread(ctx context.Context) (string, error) {
	var read cursors
	if err := s.get(ctx, "/v1/files", &read); err != nil {
		return "", err
	}
	offsets := map[string]int64{}
	for _, f := range read.Files {
		offsets[f.Path] = f.Offset
	}
	paths, err := filepath.Glob(s.path("box/tasks/*.jsonl"))
	for _, path := range paths {
		text, readErr := os.ReadFile(path)
		if readErr != nil {
			return "", readErr
		}
		whole := int64(bytes.LastIndexByte(text, '\n') + 1)
		if name := "tasks/" + filepath.Base(path); offsets[name] < whole {
			return fmt.Sprintf("%s was read to %d of %d", name, offsets[name], whole), nil
		}
	}
	return "", err
}

// looked is all that a look at the tasks found.
type looked struct {
	site   *site
	limits limits
	status status
	tasks  []task
}

// moves tells why a task goes on by itself, "" if it does not.
func (l looked) moves(t task) string {
	if !t.Until.IsZero() && time.Until(t.Until) < soon {
		return "and is looked at again"
	}
	switch t.State {
	case "done":
		if _, err := os.Stat(l.site.path("box/results/" + t.ID + ".json")); err != nil || !t.Final {
			return "and its result is not there"
		}
	case "running":
		if _, err := os.Stat(l.site.path(fmt.Sprintf("marks/%s.%d", t.ID, t.Attempt))); !waiting[t.Agent] || err != nil {
			return "and its agent does not wait for a word"
		}
	case "queued", "received":
		if !l.blocked(t) {
			return "and nothing keeps it from starting"
		}
	case "waiting":
		return l.fetched(t)
	case "held":
		return l.heldFor(t)
	}
	return ""
}

// blocked tells whether a run that waits for a word has what a task needs to start.
func (l looked) blocked(t task) bool {
	total, ofAgent, ofRequester, earlier := 0, 0, 0, false
	for _, other := range l.tasks {
		if other.State != "running" {
			continue
		}
		total++
		if other.Agent == t.Agent {
			ofAgent++
		}
		if other.Requester == t.Requester {
			ofRequester++
		}
		earlier = earlier || other.ID == t.ID
	}
	slots := 1
	if t.Agent == "slow" || t.Agent == "again" || t.Agent == "worker" {
		slots = 2
	}
	if t.State == "received" {
		return true // an earlier revision has not ended
	}
	return total >= l.limits.concurrency || ofAgent >= slots || l.limits.perRequester > 0 && ofRequester >= l.limits.perRequester
}

// fetched tells whether a task that waits is in the inbox of its agent.
func (l looked) fetched(t task) string {
	if _, err := os.Stat(l.site.path("box/results/" + t.ID + ".json")); err == nil {
		return "and its answer was placed"
	}
	text, err := os.ReadFile(l.site.path("box/agents/" + t.Agent + "/inbox.jsonl"))
	if err != nil || !strings.Contains(string(text), `"`+t.ID+`"`) {
		return "and is not in the inbox of its agent"
	}
	return ""
}

func (l looked) heldFor(t task) string {
	if slices.Contains(t.Held, "paused") && !slices.Contains(l.status.Paused, "") && !slices.Contains(l.status.Paused, t.Agent) {
		return "and no pause is left"
	}
	return ""
}

// tellable are the kinds of events of which the requester of a task is told.
var tellable = []string{
	"task.accepted", "task.resubmitted", "task.held", "task.released", "task.waiting", "approval.asked", "oversight.asked",
	"oversight.answered", "task.queued", "task.resumed", "oversight.inquired", "task.progress",
}

// tells tells what of a task is still to be said, or to be done because of another task.
func (l looked) tells(t task, file taskDetails) string {
	if why := due(file.Messages); why != "" {
		return why
	}
	open := slices.ContainsFunc(file.Children, func(id string) bool {
		return slices.ContainsFunc(l.tasks, func(c task) bool { return c.ID == id && c.State != "done" })
	})
	asks := slices.ContainsFunc(file.Approvals, func(a approval) bool { return a.Decision == "" })
	switch {
	case t.State == "running" && t.Agent == "progress" && !slices.ContainsFunc(file.Events, func(e event) bool { return e.Rev == t.Revision && e.Kind == "task.progress" }):
		return "and its progress was not read"
	case slices.Contains(t.Held, "children") && !open:
		return "and no task below it is open"
	case t.State == "review" && !asks && !open:
		return "and nobody is asked about its answer"
	case file.Conversation == nil || !file.Conversation.Open:
		return ""
	case t.State == "done":
		return "and there may be more to tell"
	}
	for _, e := range file.Events {
		if e.Seq > file.Conversation.Notified && slices.Contains(tellable, e.Kind) {
			return "and its requester was not told of " + e.Kind
		}
	}
	return ""
}
