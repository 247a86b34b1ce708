// Package talk decides what is to be said when something has happened to a task.
// It looks at nothing but what it is given, so the same story is always told in
// the same words.
package talk

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

// A Task is what its requester has to be told about: who asked whom for it, in
// which words, and how it ended. The zero value is told nothing.
type Task struct {
	ID        envelope.ID
	Type      string
	Requester string
	Agent     string
	Dialect   envelope.Dialect // in which it was asked for, and is told of
	Message   string           // the message that asked for it
	Thread    string
	Trace     string
	Tie       envelope.Tie

	Result  *envelope.Result // how it ended; nil while it has not
	Cancels []string         // the messages by which its requester wanted it ended; nil when nobody did, or somebody else
}

// News returns what the requester of a task is to be told of some events, the
// oldest first, and of its end once it has one: that it was taken before
// anything else (CLOWL-23), why it waits, how far it is, and at last what came
// of it, which is said once and is the last of all. A request that was refused
// when it came was not taken. Dialects without words for an acknowledgement or
// for progress are told the end alone, and so is whoever gathers it from its
// members. What an overseer says of a task it says itself. The messages have no
// ID and no Time.
func News(t Task, events []task.Event) (news []envelope.Message) {
	if t.Dialect == envelope.CLowl && t.Tie != envelope.Member && t.Tie != envelope.Oversee {
		for i, e := range events {
			refused := i+1 < len(events) && events[i+1].Kind == task.KindTaskRejected
			news = append(news, t.of(e, refused)...)
		}
	}
	if t.Result != nil && t.Tie != envelope.Oversee {
		news = append(news, t.ends()...)
	}
	return news
}

// detail is what of an event's data is told.
type detail struct {
	Held    []string       `json:"held"`    // task.accepted
	Reasons []string       `json:"reasons"` // task.held, task.released
	Stage   string         `json:"stage"`   // approval.asked
	Note    string         `json:"note"`    // task.progress
	Pct     jsontext.Value `json:"pct"`     // task.progress
}

// of is what is told of one event.
func (t Task) of(e task.Event, refused bool) []envelope.Message {
	var d detail
	switch e.Kind {
	case task.KindTaskAccepted, task.KindTaskHeld, task.KindTaskReleased, task.KindApprovalAsked, task.KindTaskProgress:
		if e.Data != nil && json.Unmarshal(e.Data, &d) != nil {
			d = detail{} // then its kind is all that can be told
		}
	}
	switch e.Kind {
	case task.KindTaskAccepted, task.KindTaskResubmitted:
		switch {
		case refused:
			return nil
		case len(d.Held) > 0:
			return []envelope.Message{t.say(envelope.Accepts, map[string]any{}), t.waits(d.Held...)}
		}
		return []envelope.Message{t.say(envelope.Accepts, map[string]any{})}
	case task.KindTaskHeld:
		return []envelope.Message{t.waits(d.Reasons...)}
	case task.KindTaskReleased:
		if len(d.Reasons) > 0 { // else it is held or queued at once, with a story of its own
			return []envelope.Message{t.waits(d.Reasons...)}
		}
	case task.KindTaskWaiting:
		return []envelope.Message{t.waits("inbox")}
	case task.KindApprovalAsked:
		if d.Stage == string(envelope.ApprovalPost) { // of the others task.held tells
			return []envelope.Message{t.waits("approval")}
		}
	case task.KindOversightAsked, task.KindOversightAnswered:
		return []envelope.Message{t.waits("oversight")}
	case task.KindTaskQueued, task.KindTaskResumed, task.KindOversightInquired:
		return []envelope.Message{t.reports(map[string]any{"blocked": []string{}}, "goes on")}
	case task.KindTaskProgress:
		data := map[string]any{}
		if d.Pct != nil {
			data["pct"] = d.Pct
		}
		return []envelope.Message{t.reports(data, d.Note)}
	}
	return nil
}

func (t Task) waits(reasons ...string) envelope.Message {
	note := "waits"
	if len(reasons) > 0 {
		note = "waits for " + strings.ReplaceAll(strings.Join(reasons, " and "), "_", " ")
	}
	m := t.say(envelope.Waits, map[string]any{"blocked": slices.Concat([]string{}, reasons), "note": note})
	m.Text = note
	return m
}

func (t Task) reports(data map[string]any, note string) envelope.Message {
	if note != "" {
		data["note"] = note
	}
	m := t.say(envelope.Reports, data)
	m.Text = note
	return m
}

// ends are what came of the task, and the answers to the messages by which its
// requester wanted it ended: it is stopped, or was over before (CLOWL-27).
func (t Task) ends() (all []envelope.Message) {
	cancels, stopped := t.Cancels, t.Result.Status == envelope.Stopped
	if t.Dialect != envelope.CLowl {
		cancels = nil // which has no such message
	}
	if !stopped || len(cancels) == 0 {
		all = append(all, t.end())
	}
	for _, cancel := range cancels {
		m := t.say(envelope.Stops, map[string]any{"status": "cancelled"})
		if !stopped {
			m = t.say(envelope.Fails, nil)
			m.Failure = dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("%s is over already (%s)", t.ID, t.Result.Status))
			m.Text = m.Failure.Message
		}
		m.Cause = cancel
		all = append(all, m)
	}
	return all
}

// end is what came of the task. Who did not cancel it by a message hears that
// somebody has.
func (t Task) end() envelope.Message {
	r := *t.Result
	if r.Status == envelope.OK || r.Status == envelope.Partial {
		m := t.say(envelope.Completes, nil)
		if r.Output.Summary == envelope.NoSummary {
			r.Output.Summary = ""
		}
		m.Text, m.Answer = r.Output.Summary, r
		m.Deterministic, m.Context = dialect.Beside(r)
		return m
	}
	m := t.say(envelope.Fails, nil)
	m.Failure, m.Answer = Failure(r), r
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

// say is a message to the requester. What has no data is in nobody's words yet.
func (t Task) say(act envelope.Act, data map[string]any) envelope.Message {
	m := envelope.Message{
		Act: act, Task: t.ID, Cause: t.Message, Thread: t.Thread, Trace: t.Trace,
		From: t.Agent, To: []string{t.Requester}, Type: t.Type,
	}
	if data != nil {
		m.Dialect = t.Dialect
		text, err := json.Marshal(data, json.Deterministic(true))
		if err != nil {
			panic("say " + string(act) + ": " + err.Error()) // strings, lists and numbers that were JSON before
		}
		m.Data = text
	}
	return m
}

// Silent reports whether nothing of what News says is for an inbox: AINL's
// requesters read results/, we gather what members answer ourselves, and nobody
// has no inbox.
func (t Task) Silent() bool {
	return t.Dialect == envelope.AINL || t.Dialect == "" || t.Tie == envelope.Member || t.Requester == "" || t.Requester == envelope.Ourselves || t.Requester == envelope.Everybody
}
