package conversation

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// InHistory reports whether a task's agent gets a recorded message in its next run. The
// request and the ends of other tasks reach the agent in another way. A translated copy
// of a message is left out.
func InHistory(m task.Message, t task.Task) bool {
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		return m.Task != t.Seq
	case envelope.Accepts, envelope.Waits, envelope.Reports:
		return false
	case envelope.Completes, envelope.Fails, envelope.Stops:
		return m.Via != task.ByDaemon || m.Task == t.Seq && m.To == t.Agent
	}
	return m.Via != task.ByDaemon || isOurs(m)
}

// Recorded combines a message read from its line with the facts that only the record has.
func Recorded(read envelope.Message, m task.Message, t task.Task) envelope.Message {
	read.Dialect, read.Act, read.ID, read.Cause, read.Thread, read.Trace = m.Dialect, m.Act, m.ID, m.Cause, m.Thread, m.Trace
	read.From, read.To, read.Time = m.From, strings.Split(m.To, ","), m.Time
	read.Task = cmp.Or(read.Task, t.ID)
	return read
}

// End returns the message with which an agent reports the outcome of a task to its
// requester.
func End(t task.Task, c task.Conversation, r envelope.Result) envelope.Message {
	m := envelope.Message{
		Act: envelope.Completes, Task: t.ID, Cause: c.Message, Thread: c.Thread, Trace: c.Trace,
		From: speaker(t.Agent), To: []string{t.Requester}, Time: t.Finished, Type: t.Type, Text: r.Output.Summary, Answer: r,
	}
	m.Deterministic, m.Context = dialect.Beside(r)
	if r.Status != envelope.OK && r.Status != envelope.Partial {
		m.Act, m.Failure = envelope.Fails, Failure(r)
		m.Text = m.Failure.Message
	}
	return m
}

// ResultOf decodes the result of a finished task. A replaced task has a status only.
func ResultOf(t task.Task, raw []byte) envelope.Result {
	if r, findings := envelope.DecodeResult(raw); raw != nil && !findings.Refused() && !WasLater(t, raw) {
		return r
	}
	return envelope.Result{TaskID: t.ID, AgentID: t.Agent, Status: t.Status, Error: envelope.Error{Kind: t.Kind}}
}

// questionMember is a member of a result that is used if a question gets no reply. It
// holds the attempt that asked.
const questionMember = "mbx.unanswered"

// Question returns the result of a task for the case that the agent's question gets no
// reply; nil if there is no question. An overseer has none, because silence doesn't
// approve. An answer in review keeps its own result.
func Question(o task.Outcome, attempt int, tie envelope.Tie, children []task.Child) []byte {
	_, open := Reviewing(children)
	if o.Hold != task.Reply || o.Unanswered.Status == "" || tie == envelope.Oversee || open {
		return nil
	}
	r := o.Unanswered
	members := map[string]jsontext.Value{}
	_ = json.Unmarshal(r.Extra, &members) // there may be none
	members[questionMember] = encode(attempt)
	r.Extra = encode(members)
	return r.Encode()
}

// Unanswered returns the result that Question gave an attempt; nil for none.
func Unanswered(raw []byte, attempt int) *envelope.Result {
	var asked struct {
		Attempt int `json:"mbx.unanswered"`
	}
	r, findings := envelope.DecodeResult(raw)
	if findings.Refused() || json.Unmarshal(r.Extra, &asked) != nil || asked.Attempt != attempt {
		return nil
	}
	return &r
}

// WasLater reports whether the result of a replaced task is one that it would have had
// later.
func WasLater(t task.Task, raw []byte) bool {
	if t.State != task.Done || t.Status != envelope.Stopped {
		return false
	}
	r, findings := envelope.DecodeResult(raw)
	return !findings.Refused() && r.Status != t.Status
}
