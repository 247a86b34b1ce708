// Package conversation has the rules of messages between participants: what a message asks
// for, which task it names, how tasks depend on each other, which agent a message resumes,
// which notifications a requester gets, and what an overseer decides. All functions are
// pure.
package conversation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// A Request holds the facts about a task that its requester's notifications need. The zero
// value has no notifications.
type Request struct {
	ID        envelope.ID
	Type      string
	Requester string
	Agent     string
	Dialect   envelope.Dialect // of the request, and of the notifications
	Message   string           // the ID of the requesting message
	Thread    string
	Trace     string
	Tie       envelope.Tie
	Routing   bool // the requester wants the decisions about the agent, too

	Origin

	Result  *envelope.Result // nil while the task isn't finished
	Cancels []string         // IDs of the messages with which the requester cancelled it
}

// An Origin holds the facts about a task that only notifications in Clutch need.
type Origin struct {
	Clutch   *envelope.ClutchPart // of a request in Clutch, whose trace and domain the messages echo; nil: none
	Seq      int64                // of the task in the ledger
	Received time.Time            // of the request
	Chosen   int64                // the Seq of the event that chose the agent, see ChosenBy; 0: the request named it
}

// Notifications returns the messages to the requester of a task about some events, the
// oldest first, and about its end: acceptance before anything else (CLOWL-23), wait
// reasons, progress, and the outcome once. A request that was refused on arrival has no
// acceptance. Only CLowl and Clutch have acknowledgements and progress; other dialects and members of a
// combined task get the outcome only. An overseer sends its own messages. In Clutch each message
// has an ID, the same each time, and the Time of its event, except for the outcome, which has no
// Time; elsewhere messages have neither.
func Notifications(r Request, events []task.Event) (all []envelope.Message) {
	if (r.Dialect == envelope.CLowl || r.Dialect == envelope.Clutch) && r.Tie != envelope.Member && r.Tie != envelope.Oversee {
		for i, e := range events {
			next := task.Kind("")
			if i+1 < len(events) {
				next = events[i+1].Kind
			}
			for _, m := range r.notify(e, next) {
				if r.Dialect == envelope.Clutch {
					m.ID, m.Time = MessageID(e, m.Act), e.Time
				}
				all = append(all, m)
			}
		}
	}
	if r.Result != nil && r.Tie != envelope.Oversee {
		all = append(all, r.outcomes()...)
	}
	return all
}

// A detail is the event data that notifications use.
type detail struct {
	Held    []string       `json:"held"`    // task.accepted, task.resubmitted
	Kid     string         `json:"kid"`     // task.accepted
	Reasons []string       `json:"reasons"` // task.held, task.released
	Stage   string         `json:"stage"`   // approval.asked
	Note    string         `json:"note"`    // task.progress
	Pct     jsontext.Value `json:"pct"`     // task.progress

	Error    envelope.Kind `json:"error"`    // task.retried, task.put_back
	Code     string        `json:"code"`     // of the error, by its agent
	Message  string        `json:"message"`  // of the error
	Selected string        `json:"selected"` // routing.decided
}

// notify returns the messages about one event, which another one of that kind follows. A task
// that came without an agent is accepted when that is chosen (CLUTCH-90).
func (r Request) notify(e task.Event, next task.Kind) []envelope.Message {
	d := detailOf(e)
	all := r.describe(e, d, next)
	switch {
	case e.Seq < r.Chosen:
		return slices.DeleteFunc(all, func(m envelope.Message) bool { return m.Act != envelope.FailsToRoute })
	case e.Seq == r.Chosen && r.Chosen > 0:
		accept := r.message(envelope.Accepts, map[string]any{})
		accept.From = cmp.Or(d.Selected, accept.From)
		all = append(all, accept)
	}
	return all
}

// detailOf returns the data of an event that its notifications use.
func detailOf(e task.Event) (d detail) {
	switch e.Kind {
	case task.KindTaskAccepted, task.KindTaskResubmitted, task.KindTaskHeld, task.KindTaskReleased, task.KindApprovalAsked, task.KindTaskProgress,
		task.KindTaskRetried, task.KindTaskPutBack, task.KindRoutingDecided:
		if e.Data != nil && json.Unmarshal(e.Data, &d) != nil {
			d = detail{} // only the kind is known
		}
	}
	return d
}

// describe returns the messages about one event of a task that has an agent.
func (r Request) describe(e task.Event, d detail, next task.Kind) []envelope.Message {
	switch e.Kind {
	case task.KindTaskAccepted, task.KindTaskResubmitted:
		isNew := e.Kind == task.KindTaskAccepted // a retry is never refused at once
		switch {
		case isNew && (next == task.KindTaskRejected || next == task.KindRoutingFailed && len(d.Held) == 0): // refused at once
			return nil
		case len(d.Held) > 0:
			return []envelope.Message{r.message(envelope.Accepts, map[string]any{}), r.waits(d.Held...)}
		}
		return []envelope.Message{r.message(envelope.Accepts, map[string]any{})}
	case task.KindTaskHeld:
		return []envelope.Message{r.waits(d.Reasons...)}
	case task.KindTaskReleased:
		if len(d.Reasons) > 0 { // otherwise a task.held or task.queued follows at once
			return []envelope.Message{r.waits(d.Reasons...)}
		}
	case task.KindTaskWaiting:
		return []envelope.Message{r.waits("inbox")}
	case task.KindApprovalAsked:
		if d.Stage != string(envelope.ApprovalPre) { // which has a task.held event
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
	case task.KindTaskRetried, task.KindTaskPutBack:
		if r.Dialect == envelope.Clutch {
			return []envelope.Message{r.failedAttempt(d)}
		}
	case task.KindRoutingDecided:
		return r.decision(envelope.Routes, e, "selected", "candidates", "reason", "scores")
	case task.KindRoutingFailed:
		return r.decision(envelope.FailsToRoute, e, "reason")
	}
	return nil
}

// decision returns some members of a decision about the agent, if the requester wants it. The others
// are about agents that do not concern the requester.
func (r Request) decision(act envelope.Act, e task.Event, members ...string) []envelope.Message {
	all, shown := map[string]jsontext.Value{}, map[string]any{}
	if !r.Routing || json.Unmarshal(e.Data, &all) != nil {
		return nil
	}
	for _, name := range members {
		if value, ok := all[name]; ok {
			shown[name] = value
		}
	}
	m := r.message(act, shown)
	m.From = "router"
	return []envelope.Message{m}
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

// failedAttempt returns the report that an attempt failed, with its error (CLUTCH-81).
func (r Request) failedAttempt(d detail) envelope.Message {
	data := map[string]any{}
	note := "another attempt follows"
	if d.Error != "" {
		code, retryable := dialect.ClutchCodeOf(envelope.Failure{Kind: d.Error, Code: d.Code})
		data["error"] = map[string]any{
			"code": code, "message": d.Message, "retryable": retryable, "details": map[string]any{"kind": d.Error},
		}
		note += ": " + d.Message
	}
	m := r.message(envelope.Waits, data)
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

// outcomes returns the outcome of the task and the replies to the requester's cancellations:
// the task was stopped, or had finished before (CLOWL-27).
func (r Request) outcomes() (all []envelope.Message) {
	cancels, stopped := r.Cancels, r.Result.Status == envelope.Stopped
	if r.Dialect != envelope.CLowl {
		cancels = nil // other dialects have no reply to a cancellation
	}
	if !stopped || len(cancels) == 0 {
		m := r.outcome()
		if r.Dialect == envelope.Clutch {
			m.ID = outcomeID(r.Seq, r.Received)
		}
		all = append(all, m)
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

// outcome returns the outcome of the task.
func (r Request) outcome() envelope.Message {
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

// Failure returns why a task failed, with the code from its agent. A failure that the agent
// reports has no kind. A failure can be retried if its kind allows it and the agent doesn't
// forbid it (CLOWL-26).
func Failure(r envelope.Result) envelope.Failure {
	f := dialect.FailureOf(cmp.Or(r.Error.Kind, envelope.AgentError), cmp.Or(r.Error.Message, r.Output.Summary))
	f.Code, f.Retry = r.Error.Code, f.Retry && !r.Error.Final
	return f
}

// message returns a message to the requester. Without data, the caller sets the dialect.
func (r Request) message(act envelope.Act, data map[string]any) envelope.Message {
	m := envelope.Message{
		Act: act, Task: r.ID, Cause: r.Message, Thread: r.Thread, Trace: r.Trace,
		From: speaker(r.Agent), To: []string{r.Requester}, Type: r.Type, Asked: r.Clutch,
	}
	if data != nil {
		m.Dialect, m.Data = r.Dialect, encode(data)
	}
	return m
}

// speaker returns the sender of messages about a task to its requester: its agent, or the daemon
// as long as no agent is chosen.
func speaker(agent string) string {
	if agent == envelope.Everybody {
		return envelope.Mailboxd
	}
	return agent
}

// Silent reports whether the requester has no inbox for notifications: AINL requesters read
// results/, and the daemon combines the answers of members.
func (r Request) Silent() bool {
	switch r.Requester {
	case "", envelope.Mailboxd, envelope.Everybody:
		return true
	}
	return r.Dialect == envelope.AINL || r.Dialect == "" || r.Tie == envelope.Member
}
