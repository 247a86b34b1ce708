package conversation

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// HasEvent reports whether a recorded message is an event of its own. A request, progress and an
// end are part of the events of their task, and a message that the daemon sends for another
// sender, or in another dialect, was recorded before.
func HasEvent(m task.Message) bool {
	switch m.Act {
	case envelope.Informs, envelope.Asks, envelope.ReportsStatus, envelope.Inquires, envelope.Announces, envelope.Updates, envelope.Cancels,
		envelope.Calls, envelope.Returns, envelope.FailsTool:
		return m.Via != task.ByDaemon || isOurs(m)
	case envelope.Reports, envelope.Waits:
		return m.Via == task.ByRun // printed at the end; during a run it is task.progress
	}
	return false
}

// isOurs reports whether mailboxd says something itself, or what a tool returned that it has called.
func isOurs(m task.Message) bool { return m.From == envelope.Mailboxd || m.From == envelope.MCP }

// AsksForWork reports whether a message asks for a task.
func AsksForWork(m envelope.Message) bool {
	return m.Act == envelope.Requests || m.Act == envelope.Delegates
}

// Renamed returns a request with the id of another task, and without its line. A Clutch request
// gets a parent unless that is ""; its idempotency key belongs to the task that it names now.
func Renamed(m envelope.Message, id, parent envelope.ID) envelope.Message {
	m.Task, m.Raw = id, nil
	if m.Clutch == nil {
		return m
	}
	part := *m.Clutch
	part.TaskID, part.Parent, part.IdempotencyKey = string(id), cmp.Or(parent, part.Parent), ""
	m.Clutch = &part
	return m
}

// RunOf returns the run that a request names for its tree of tasks; "" for none (CLUTCH-05).
func RunOf(m envelope.Message) string {
	if m.Dialect == envelope.CLowl || m.Dialect == envelope.Clutch {
		return m.Trace // the tid, the run_id
	}
	return ""
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

// AsksForAttempt reports whether an agent's error says that another attempt may succeed. Only
// Clutch says it of the same task: in other dialects the requester sends the request again.
func AsksForAttempt(m envelope.Message) bool {
	var data struct {
		Retryable bool `json:"retryable"`
	}
	return m.Clutch != nil && m.Act == envelope.Fails && json.Unmarshal(m.Data, &data) == nil && data.Retryable
}

// OnlyDaemonSends reports whether only the daemon sends a message with an act: what a tool
// returned, and what the router decided (CLUTCH-33, CLUTCH-35).
func OnlyDaemonSends(act envelope.Act) bool {
	return act == envelope.Returns || act == envelope.FailsTool || act == envelope.Routes || act == envelope.FailsToRoute
}

// OnlyRecorded reports whether a message with an act has neither an effect on tasks nor
// recipients: an agent says it about itself, or may not say it.
func OnlyRecorded(act envelope.Act) bool {
	return act == envelope.Announces || act == envelope.Updates || act == envelope.SendsHeartbeat || OnlyDaemonSends(act)
}

// Refuse returns the reply to a message of an agent's run that has no effect: a call of a tool,
// or a delegation without a mode (CLOWL-30).
func Refuse(m envelope.Message, t task.Task, now time.Time) (reply envelope.Message, refused bool) {
	if m.Act == envelope.Calls {
		return RefuseTool(m, t, now), m.Returned == nil
	}
	return Error(m, t, dialect.FailureOf(envelope.ValidationFailed, noMode), now), NoMode(m)
}

// MaxRefused limits how often an agent runs again whose runs end with refused messages alone.
const MaxRefused = 8

// RefusedError returns why the messages of a run that has no answer were refused.
func RefusedError(messages []envelope.Message) envelope.Error {
	if slices.ContainsFunc(messages, func(m envelope.Message) bool { return m.Act == envelope.Calls }) {
		return envelope.Error{Kind: envelope.DependencyFailed, Code: envelope.ToolUnavailable, Message: noTools}
	}
	return envelope.Error{Kind: envelope.OutputInvalid, Message: noMode}
}

// The reasons of refused messages.
const (
	noTools = "mailboxd calls no tool but those of MCP servers that agents[].tools lists"
	noMode  = "body.d.delegation_mode: must be transfer, fork or assist"
)

// NoMode reports whether a delegation in CLowl has no valid mode. Each other dialect implies it.
func NoMode(m envelope.Message) bool {
	return m.Act == envelope.Delegates && m.Dialect == envelope.CLowl && m.Tie == ""
}

// RefuseTool returns the reply to an agent that calls a tool: no tool is available (CLUTCH-33, CLUTCH-89).
func RefuseTool(m envelope.Message, t task.Task, now time.Time) envelope.Message {
	why := dialect.FailureOf(envelope.DependencyFailed, noTools)
	why.Code = envelope.ToolUnavailable
	reply := Error(m, t, why, now)
	reply.Act = envelope.FailsTool
	return reply
}

// ReturnTool returns the reply to an agent whose call of a tool mailboxd has made: what the tool returned,
// or why there is nothing.
func ReturnTool(m envelope.Message, t task.Task, now time.Time) envelope.Message {
	reply := Error(m, t, m.Returned.Failure, now)
	reply.Act, reply.From = envelope.FailsTool, envelope.MCP
	if m.Returned.Result == nil {
		return reply
	}
	var result, called map[string]jsontext.Value
	_ = json.Unmarshal(m.Returned.Result, &result)
	_ = json.Unmarshal(m.Data, &called)
	data := map[string]any{"tool": called["tool"], "success": true}
	for _, name := range []string{"content", "structuredContent"} {
		if value := result[name]; value != nil {
			data[name] = value
		}
	}
	reply.Act, reply.Type, reply.Data = envelope.Returns, "", encode(data)
	return reply
}

// Acknowledges reports whether a message accepts a task, or confirms that its sender
// stopped it.
func Acknowledges(m envelope.Message) bool {
	return m.Act == envelope.Accepts || m.Act == envelope.Stops
}

// AsksForStatus reports whether a question asks the daemon for the status of a task: its
// recipient is the daemon, or it names a task and has no other content.
func AsksForStatus(m envelope.Message) bool {
	if slices.Equal(Recipients(m), []string{envelope.Mailboxd}) {
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

// Interrupts reports whether a question is for an agent that works on the task which the
// question names (CLOWL-28). In other dialects, only a status question is answered with a status.
func Interrupts(m envelope.Message, about task.Task) bool {
	atWork := about.State == task.Running || about.State == task.Waiting
	return m.Dialect == envelope.CLowl && atWork && slices.Contains(m.To, about.Agent)
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
	if len(m.To) == 0 && !(AsksForWork(m) && m.Clutch.Routed()) {
		m.To = []string{t.Requester}
	}
	return m
}

// Error returns the daemon's error reply to a message of an agent.
func Error(m envelope.Message, t task.Task, why envelope.Failure, now time.Time) envelope.Message {
	return envelope.Message{
		Act: envelope.Fails, Task: t.ID, Cause: m.ID, Thread: m.Thread, Trace: m.Trace, Dialect: m.Dialect,
		From: envelope.Mailboxd, To: []string{t.Agent}, Time: now, Type: "error", Text: why.Message, Failure: why, Asked: m.Clutch,
	}
}

// ErrorReply returns the daemon's error reply to a message in a line, without its recipient. In
// Clutch it is a chat.system message with the fields of an error: a task.error would end the
// task that the message names, and each task has one terminal message (CLUTCH-31).
func ErrorReply(to envelope.Message, why envelope.Failure) envelope.Message {
	if to.Dialect != envelope.Clutch {
		return envelope.Message{Act: envelope.Fails, Type: "error", Text: why.Message, Failure: why}
	}
	code, retryable := dialect.ClutchCode(why.Kind)
	return envelope.Message{Act: envelope.Informs, Type: "error", Dialect: envelope.Clutch, Asked: to.Clutch, Data: encode(map[string]any{
		"code": code, "message": why.Message, "retryable": retryable, "details": map[string]any{"kind": why.Kind},
	})}
}

// Concludes reports whether a message of the daemon is the last one about a task or another message: an outcome, or
// ErrorReply.
func Concludes(m envelope.Message) bool {
	switch m.Act {
	case envelope.Completes, envelope.Fails, envelope.Stops:
		return true
	}
	return m.Act == envelope.Informs && m.Type == "error"
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
		Pct      jsontext.Value `json:"pct"`
		Progress jsontext.Value `json:"progress"` // the same in Clutch
		Note     string         `json:"note"`
	}
	if m.Data != nil && json.Unmarshal(m.Data, &data) != nil {
		data.Note = "" // the text says the same
	}
	progress := map[string]any{}
	for _, pct := range []jsontext.Value{data.Progress, data.Pct} {
		if pct.Kind() == '0' {
			progress["pct"] = pct
		}
	}
	if note := cmp.Or(m.Text, data.Note); note != "" {
		progress["note"] = note
	}
	return progress
}
