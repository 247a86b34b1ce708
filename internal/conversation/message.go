package conversation

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// AsksForWork reports whether a message asks for a task.
func AsksForWork(m envelope.Message) bool {
	return m.Act == envelope.Requests || m.Act == envelope.Delegates
}

// Recipients returns the recipients of a message without duplicates.
func Recipients(m envelope.Message) (to []string) {
	for _, name := range m.To {
		if !slices.Contains(to, name) {
			to = append(to, name)
		}
	}
	return to
}

// Acknowledges reports whether a message accepts a task, or confirms that its sender
// stopped it.
func Acknowledges(m envelope.Message) bool {
	return m.Act == envelope.Accepts || m.Act == envelope.Stops
}

// AsksForStatus reports whether a question asks the daemon for the status of a task: its
// recipient is the daemon, or it names a task and has no other content.
func AsksForStatus(m envelope.Message) bool {
	if slices.Equal(Recipients(m), []string{envelope.Ourselves}) {
		return true
	}
	var data map[string]jsontext.Value
	if m.Task == "" && m.Cause == "" || json.Unmarshal(m.Data, &data) != nil {
		return false
	}
	delete(data, "task_id")
	delete(data, "mid")
	return m.Text == "" && (m.Type == "status" || len(data) == 0)
}

// Cancels reports whether a message cancels its task: by a CNCL, or in CAP by an error 499
// to the agent of the task (mapping 2.2).
func Cancels(m envelope.Message, about task.Task) bool {
	return m.Act == envelope.Cancels ||
		m.Act == envelope.Fails && m.Failure.Kind == envelope.Cancelled && m.From != about.Agent && slices.Contains(m.To, about.Agent)
}

// CancelledRequest returns the name of the request that a message cancels.
func CancelledRequest(m envelope.Message) string {
	if m.Task != "" && m.Task != dialect.TaskID(m.Cause) {
		return string(m.Task)
	}
	return m.Cause
}

// EndsRun reports whether a message of an agent ends its run until others have sent
// something: the message delegates the task or is the answer. Read is the message decoded
// in the context of that task.
func EndsRun(m, read envelope.Message) bool {
	if AsksForWork(m) {
		return m.Act == envelope.Delegates && m.Tie != envelope.Fork
	}
	return read.Act == envelope.Completes || read.Act == envelope.Fails
}

// AnswersForRun reports whether a CAP line would answer a task (CAP-33) whose agent is
// running. The answer is then the answer of the run (CLOWL-40).
func AnswersForRun(m envelope.Message, about task.Task) bool {
	return m.Dialect == envelope.CAP && m.Act == envelope.Informs && !m.WantsReply && about.State == task.Running &&
		m.From == about.Agent && slices.Contains(m.To, about.Requester)
}

// Complete returns an agent's message with the fields that the daemon knows: sender,
// thread, trace and time, and in CLowl an id and the id of the message it replies to
// (CLOWL-38).
func Complete(m envelope.Message, t task.Task, c task.Conversation, id string, now time.Time) envelope.Message {
	m.From = t.Agent
	m.Thread, m.Trace = cmp.Or(c.Thread, m.Thread), cmp.Or(c.Trace, m.Trace)
	m.Dialect = cmp.Or(m.Dialect, envelope.AINL)
	if m.Time.IsZero() {
		m.Time = now
	}
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = cmp.Or(m.ID, id), cmp.Or(m.Cause, c.Message)
	}
	if len(m.To) == 0 {
		m.To = []string{t.Requester}
	}
	return m
}

// Error returns the daemon's error reply to a message of an agent.
func Error(m envelope.Message, t task.Task, why envelope.Failure, now time.Time) envelope.Message {
	return envelope.Message{
		Act: envelope.Fails, Task: t.ID, Cause: m.ID, Thread: m.Thread, Trace: m.Trace, Dialect: m.Dialect,
		From: envelope.Ourselves, To: []string{t.Agent}, Time: now, Type: "error", Text: why.Message, Failure: why,
	}
}

// Deliverable reports whether the line of a message can be delivered unchanged. It must be
// one line with the same sender, recipients and id in its dialect's reading, and must not
// be an answer that a later answer replaced.
func Deliverable(m, read envelope.Message) bool {
	replaced := m.Act == envelope.Informs && (read.Act == envelope.Completes || read.Act == envelope.Fails)
	return len(m.Raw) > 0 && !slices.Contains(m.Raw, '\n') && !replaced &&
		read.From == m.From && read.ID == m.ID && slices.Equal(read.To, m.To)
}

// DialectFor returns the dialect in which a recipient gets a message about a task: for an
// agent the dialect that it reads, for the requester the dialect of the request. AINL has
// requests and answers only, so other messages keep their own dialect. Reads is "" for a
// recipient that isn't an agent.
func DialectFor(to string, reads envelope.Dialect, about task.Task, own envelope.Dialect) envelope.Dialect {
	if reads == "" && to == about.Requester {
		reads = about.Dialect
	}
	if reads == envelope.AINL || reads == "" {
		return own
	}
	return reads
}

// Progress returns the event data of a progress report: percentage and note (CLOWL-24).
func Progress(m envelope.Message) map[string]any {
	var data struct {
		Pct  jsontext.Value `json:"pct"`
		Note string         `json:"note"`
	}
	if m.Data != nil && json.Unmarshal(m.Data, &data) != nil {
		data.Note = "" // the text says the same
	}
	progress := map[string]any{}
	if data.Pct.Kind() == '0' {
		progress["pct"] = data.Pct
	}
	if note := cmp.Or(m.Text, data.Note); note != "" {
		progress["note"] = note
	}
	return progress
}
