package conversation

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// InHistory reports whether the agent of a task gets a recorded message when it runs
// again. It gets the request by itself, the ends of other tasks as these have them, and
// nothing in another dialect a second time.
func InHistory(m task.Message, t task.Task) bool {
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		return m.Task != t.Seq
	case envelope.Accepts, envelope.Waits, envelope.Reports:
		return false
	case envelope.Completes, envelope.Fails, envelope.Stops:
		return m.Via != task.ByDaemon || m.Task == t.Seq && m.To == t.Agent
	}
	return m.Via != task.ByDaemon || m.From == envelope.Ourselves
}

// Recorded returns a recorded message, given what its dialect reads in its line. The
// record has what the line can't say.
func Recorded(read envelope.Message, m task.Message, t task.Task) envelope.Message {
	read.Dialect, read.Act, read.ID, read.Cause, read.Thread, read.Trace = m.Dialect, m.Act, m.ID, m.Cause, m.Thread, m.Trace
	read.From, read.To, read.Time = m.From, strings.Split(m.To, ","), m.Time
	read.Task = cmp.Or(read.Task, t.ID)
	return read
}

// End returns the outcome of a task as its agent sends it to its requester.
func End(t task.Task, c task.Conversation, r envelope.Result) envelope.Message {
	m := envelope.Message{
		Act: envelope.Completes, Task: t.ID, Cause: c.Message, Thread: c.Thread, Trace: c.Trace,
		From: t.Agent, To: []string{t.Requester}, Time: t.Finished, Type: t.Type, Text: r.Output.Summary, Answer: r,
	}
	m.Deterministic, m.Context = dialect.Beside(r)
	if r.Status != envelope.OK && r.Status != envelope.Partial {
		m.Act, m.Failure = envelope.Fails, Failure(r)
		m.Text = m.Failure.Message
	}
	return m
}

// ResultOf returns the result of a task that is done, given its bytes. The result of a
// task that a newer request has replaced has a status alone.
func ResultOf(t task.Task, raw []byte) envelope.Result {
	if r, findings := envelope.DecodeResult(raw); raw != nil && !findings.Refused() && !WasLater(t, raw) {
		return r
	}
	return envelope.Result{TaskID: t.ID, AgentID: t.Agent, Status: t.Status, Error: envelope.Error{Kind: t.Kind}}
}

// questionMember is the member of a result that nobody has asked for yet: the attempt
// whose agent asked the question that is the answer if nobody replies.
const questionMember = "mbx.unanswered"

// Question returns what becomes the result of a task if nobody replies to the question
// of its agent; nil for no question. Silence approves of nothing, so an overseer has no
// such result, and an answer in review keeps its own.
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

// Unanswered returns the result that an attempt has if nobody replies, given the result
// of its task; nil for none.
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

// WasLater reports whether the result of a task that a newer request has replaced is one
// that the task would have had later.
func WasLater(t task.Task, raw []byte) bool {
	if t.State != task.Done || t.Status != envelope.Stopped {
		return false
	}
	r, findings := envelope.DecodeResult(raw)
	return !findings.Refused() && r.Status != t.Status
}
