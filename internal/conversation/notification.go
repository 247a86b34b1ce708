// Package conversation has the rules of messages between participants: what a
// message asks for and which task it names, how tasks belong to each other, whom a
// message wakes, what a requester is notified of, and what an overseer decides. All
// of it is a function of its arguments.
package conversation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// A Request is a task as its requester knows it: who asked whom for it, in which
// dialect, and how it ended. The requester of the zero value is notified of nothing.
type Request struct {
	ID        envelope.ID
	Type      string
	Requester string
	Agent     string
	Dialect   envelope.Dialect // of the request, and of the notifications
	Message   string           // the message that asked for it
	Thread    string
	Trace     string
	Tie       envelope.Tie

	Result  *envelope.Result // how it ended; nil while it has not
	Cancels []string         // the messages by which its requester cancelled it
}

// Notifications returns what the requester of a task is notified of some events, the
// oldest first, and of its end: that it was accepted, before anything else (CLOWL-23),
// why it waits, its progress, and at last its outcome, once. A request that was refused
// when it came was not accepted. A dialect without an acknowledgement or progress has
// the end alone, and so has a task that gathers the answers of others. An overseer
// speaks for itself. The messages have no ID and no Time.
func Notifications(r Request, events []task.Event) (all []envelope.Message) {
	if r.Dialect == envelope.CLowl && r.Tie != envelope.Member && r.Tie != envelope.Oversee {
		for i, e := range events {
			refused := i+1 < len(events) && events[i+1].Kind == task.KindTaskRejected
			all = append(all, r.notify(e, refused)...)
		}
	}
	if r.Result != nil && r.Tie != envelope.Oversee {
		all = append(all, r.ends()...)
	}
	return all
}

// A detail is what a notification has of an event's data.
type detail struct {
	Held    []string       `json:"held"`    // task.accepted
	Reasons []string       `json:"reasons"` // task.held, task.released
	Stage   string         `json:"stage"`   // approval.asked
	Note    string         `json:"note"`    // task.progress
	Pct     jsontext.Value `json:"pct"`     // task.progress
}

// notify returns what the requester is notified of one event.
func (r Request) notify(e task.Event, refused bool) []envelope.Message {
	var d detail
	switch e.Kind {
	case task.KindTaskAccepted, task.KindTaskHeld, task.KindTaskReleased, task.KindApprovalAsked, task.KindTaskProgress:
		if e.Data != nil && json.Unmarshal(e.Data, &d) != nil {
			d = detail{} // its kind alone is known
		}
	}
	switch e.Kind {
	case task.KindTaskAccepted, task.KindTaskResubmitted:
		switch {
		case refused:
			return nil
		case len(d.Held) > 0:
			return []envelope.Message{r.message(envelope.Accepts, map[string]any{}), r.waits(d.Held...)}
		}
		return []envelope.Message{r.message(envelope.Accepts, map[string]any{})}
	case task.KindTaskHeld:
		return []envelope.Message{r.waits(d.Reasons...)}
	case task.KindTaskReleased:
		if len(d.Reasons) > 0 { // else it is held or queued at once, which is another event
			return []envelope.Message{r.waits(d.Reasons...)}
		}
	case task.KindTaskWaiting:
		return []envelope.Message{r.waits("inbox")}
	case task.KindApprovalAsked:
		if d.Stage == string(envelope.ApprovalPost) { // task.held is the event of the others
			return []envelope.Message{r.waits("approval")}
		}
	case task.KindOversightAsked, task.KindOversightAnswered:
		return []envelope.Message{r.waits("oversight")}
	case task.KindTaskQueued, task.KindTaskResumed, task.KindOversightInquired:
		return []envelope.Message{r.reports(map[string]any{"blocked": []string{}}, "goes on")}
	case task.KindTaskProgress:
		data := map[string]any{}
		if d.Pct != nil {
			data["pct"] = d.Pct
		}
		return []envelope.Message{r.reports(data, d.Note)}
	}
	return nil
}

func (r Request) waits(reasons ...string) envelope.Message {
	note := "waits"
	if len(reasons) > 0 {
		note = "waits for " + strings.ReplaceAll(strings.Join(reasons, " and "), "_", " ")
	}
	m := r.message(envelope.Waits, map[string]any{"blocked": slices.Concat([]string{}, reasons), "note": note})
	m.Text = note
	return m
}

func (r Request) reports(data map[string]any, note string) envelope.Message {
	if note != "" {
		data["note"] = note
	}
	m := r.message(envelope.Reports, data)
	m.Text = note
	return m
}

// ends returns the outcome of the task, and the answers to the messages by which its
// requester cancelled it: it is stopped, or was over before (CLOWL-27).
func (r Request) ends() (all []envelope.Message) {
	cancels, stopped := r.Cancels, r.Result.Status == envelope.Stopped
	if r.Dialect != envelope.CLowl {
		cancels = nil // other dialects have no such message
	}
	if !stopped || len(cancels) == 0 {
		all = append(all, r.end())
	}
	for _, cancel := range cancels {
		m := r.message(envelope.Stops, map[string]any{"status": "cancelled"})
		if !stopped {
			m = r.message(envelope.Fails, nil)
			m.Failure = dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("%s is over already (%s)", r.ID, r.Result.Status))
			m.Text = m.Failure.Message
		}
		m.Cause = cancel
		all = append(all, m)
	}
	return all
}

// end returns the outcome of the task. A requester that did not cancel it by a message
// is notified that somebody has.
func (r Request) end() envelope.Message {
	result := *r.Result
	if result.Status == envelope.OK || result.Status == envelope.Partial {
		m := r.message(envelope.Completes, nil)
		if result.Output.Summary == envelope.NoSummary {
			result.Output.Summary = ""
		}
		m.Text, m.Answer = result.Output.Summary, result
		m.Deterministic, m.Context = dialect.Beside(result)
		return m
	}
	m := r.message(envelope.Fails, nil)
	m.Failure, m.Answer = Failure(result), result
	m.Text = m.Failure.Message
	return m
}

// Failure is why a task did not end well, with the code that its agent gave. An
// agent's own status has no kind. It is worth a retry if its kind is, unless the
// agent says that it is not (CLOWL-26).
func Failure(r envelope.Result) envelope.Failure {
	f := dialect.FailureOf(cmp.Or(r.Error.Kind, envelope.AgentError), cmp.Or(r.Error.Message, r.Output.Summary))
	f.Code, f.Retry = r.Error.Code, f.Retry && !r.Error.Final
	return f
}

// message returns a message to the requester. One without data has no dialect yet.
func (r Request) message(act envelope.Act, data map[string]any) envelope.Message {
	m := envelope.Message{
		Act: act, Task: r.ID, Cause: r.Message, Thread: r.Thread, Trace: r.Trace,
		From: r.Agent, To: []string{r.Requester}, Type: r.Type,
	}
	if data != nil {
		m.Dialect, m.Data = r.Dialect, encode(data)
	}
	return m
}

// Silent reports whether no notification is for an inbox: requesters in AINL read
// results/, the daemon combines the answers of members, and nobody has no inbox.
func (r Request) Silent() bool {
	return r.Dialect == envelope.AINL || r.Dialect == "" || r.Tie == envelope.Member || r.Requester == "" || r.Requester == envelope.Ourselves || r.Requester == envelope.Everybody
}
