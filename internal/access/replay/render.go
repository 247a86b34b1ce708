// Package replay makes messages of Clutch out of what the ledger has of a run, and finds out
// whether they say the same as the ledger: an event store that can be replayed (CLUTCH-72). It
// reads no file and no clock.
package replay

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// A Subject is a revision of a task with what its messages need.
type Subject struct {
	Row     task.Task
	Run     string
	Thread  string
	Parent  envelope.ID
	Request envelope.Task // Raw is nil when it is too old to be kept
	Message string        // the ID of the message that requested it
	Result  []byte        // of a done task; nil when it is too old to be kept
	End     int64         // the Seq of the event that ended it; 0: it is not done
	Chosen  int64         // the Seq of the event that chose its agent, see conversation.ChosenBy
}

// A Message is a message of the event store.
type Message struct {
	Seq    int64          // of its event: the order of the store
	Line   jsontext.Value // the envelope
	ID     string
	Type   string
	Run    string
	Thread string
	Task   string
	From   string // without "agent:"
}

// Render returns the messages that an event is, in order. The next event of the same revision
// tells whether a request was refused as it came; nil for none.
func Render(e task.Event, s Subject, next *task.Event) []Message {
	var said []envelope.Message
	r := renderer{e, s}
	switch {
	case e.Kind == task.KindTaskAccepted || e.Kind == task.KindTaskResubmitted:
		said = append(said, r.request())
		said = append(said, r.notify(next)...)
	case e.Seq == s.End:
		said = r.outcome()
	case e.Kind == task.KindTaskStarted, e.Kind == task.KindTaskClaimed:
		said = []envelope.Message{r.progress(envelope.Reports, "its agent is at work")}
	case e.Kind == task.KindLeaseExpired:
		said = []envelope.Message{r.progress(envelope.Waits, "another attempt follows")}
	case e.Kind == task.KindRoutingDecided:
		said = append([]envelope.Message{r.routing(envelope.Routes), r.forwarded()}, r.notify(nil)...)
	case e.Kind == task.KindRoutingFailed:
		said = []envelope.Message{r.routing(envelope.FailsToRoute)}
	default:
		said = r.notify(next)
	}
	if len(said) == 0 {
		said = []envelope.Message{r.system()}
	}
	messages := make([]Message, len(said))
	for i, m := range said {
		messages[i] = r.write(m)
	}
	return messages
}

// A renderer makes messages of one event.
type renderer struct {
	event task.Event
	Subject
}

// facts are what notifications of the requester need. Every task gets all of them here, in
// whatever dialect it was requested.
func (r renderer) facts() conversation.Request {
	return conversation.Request{
		ID: r.Row.ID, Type: r.Row.Type, Requester: r.Row.Requester, Agent: r.Row.Agent, Dialect: envelope.Clutch,
		Message: r.Message, Thread: r.Thread, Trace: r.Run,
		Origin: conversation.Origin{Clutch: r.Request.Clutch, Seq: r.Row.Seq, Received: r.Row.Received, Chosen: r.Chosen},
	}
}

// notify returns what a requester is notified of.
func (r renderer) notify(next *task.Event) []envelope.Message {
	events := []task.Event{r.event}
	if next != nil && (next.Kind == task.KindTaskRejected || next.Kind == task.KindRoutingFailed) {
		events = append(events, *next)
	}
	return conversation.Notifications(r.facts(), events)
}

// outcome returns the terminal message of the task.
func (r renderer) outcome() []envelope.Message {
	about := r.facts()
	result := conversation.ResultOf(r.Row, r.Result)
	if result.Status == envelope.Stopped && result.Error.Kind == "" {
		result.Error = envelope.Error{Kind: envelope.Cancelled, Message: "a later revision replaced it"}
	}
	about.Result = &result
	return conversation.Notifications(about, nil)
}

// request returns the message that asked for the task.
func (r renderer) request() envelope.Message {
	t := r.Request
	m := envelope.Message{
		Act: envelope.Requests, Task: r.Row.ID, ID: r.Message, From: r.Row.Requester, To: []string{cmp.Or(t.Agent, r.Row.Agent)},
		Type: r.Row.Type, Text: t.Description, Request: t,
	}
	if t.Raw == nil {
		m.Request = envelope.Task{ID: r.Row.ID, Requester: r.Row.Requester, Agent: r.Row.Agent, Type: r.Row.Type}
	}
	return m
}

// progress returns a report about the work.
func (r renderer) progress(act envelope.Act, text string) envelope.Message {
	m := r.message(act)
	m.Text = text
	return m
}

// forwarded returns the request as the orchestrator sends it to the agent that was chosen
// (CLUTCH-90).
func (r renderer) forwarded() envelope.Message {
	m := r.request()
	if raw := r.Request.Raw; r.Row.Dialect == envelope.Clutch && raw != nil {
		codec, _ := dialect.Of(envelope.Clutch)
		m, _ = codec.Decode(raw, envelope.Legacy)
		m.Clutch.IdempotencyKey, m.Clutch.Role, m.Clutch.Recipients = "", "", nil
	}
	var decision struct {
		Selected string `json:"selected"`
	}
	_ = json.Unmarshal(r.event.Data, &decision, lenient) // the agent of the task, then
	m.From, m.To = orchestrator, []string{cmp.Or(decision.Selected, r.Row.Agent)}
	m.ID, m.Cause, m.Extra = "", conversation.MessageID(r.event, envelope.Routes), nil
	return m
}

// orchestrator sends a request to the agent that was chosen for it. No line has it as its sender
// in Clutch (CLUTCH-91).
const orchestrator = "orchestrator"

// routing returns a decision of the router, or that it found no agent.
func (r renderer) routing(act envelope.Act) envelope.Message {
	m := r.message(act)
	m.From, m.Data, m.Dialect = "router", r.event.Data, envelope.Clutch
	return m
}

// system returns an event that no other type of message describes.
func (r renderer) system() envelope.Message {
	m := r.message(envelope.Informs)
	m.From = envelope.Mailboxd
	m.Text = cmp.Or(r.event.Kind.Sentence(), string(r.event.Kind))
	data := map[string]jsontext.Value{"event": quoted(string(r.event.Kind))}
	if len(r.event.Data) > 0 && string(r.event.Data) != "{}" {
		data["data"] = r.event.Data
	}
	m.Data, m.Dialect = encode(data), envelope.Clutch
	return m
}

// message returns a message of the agent to the requester.
func (r renderer) message(act envelope.Act) envelope.Message {
	return envelope.Message{Act: act, Task: r.Row.ID, From: r.Row.Agent, To: []string{r.Row.Requester}, Type: r.Row.Type, Asked: r.Request.Clutch}
}

// write encodes a message. A request that came in Clutch stays as it was said.
func (r renderer) write(m envelope.Message) Message {
	if m.Act == envelope.Requests && r.Row.Dialect == envelope.Clutch && r.Request.Raw != nil && r.event.Kind == task.KindTaskAccepted {
		if said := read(r.event.Seq, r.Request.Raw); said.Type == "task.request" {
			return said // not one of the types of before
		}
	}
	m.Time, m.Thread, m.Trace = r.event.Time, r.Thread, r.Run
	source, id := m.ID, cmp.Or(m.ID, conversation.MessageID(r.event, m.Act))
	switch {
	case m.Act != envelope.Requests:
		source = "" // it has the same name in the inbox of the requester
	case r.Row.Revision == 1 && r.event.Kind == task.KindTaskAccepted:
		id = "msg_" + string(r.Row.ID) // as in the inbox of an agent that reads Clutch
	default:
		id = conversation.MessageID(r.event, m.Act)
	}
	return r.complete(m, id, source)
}

// complete encodes a message, and adds the names that only the ledger has. Its ID is one of the
// store, since in other dialects messages have no names, or several have the same; source is the
// one that its sender gave it.
func (r renderer) complete(m envelope.Message, id, source string) Message {
	m.ID = id
	m.To = slices.DeleteFunc(slices.Clone(m.To), func(name string) bool { return name == "" })
	codec, _ := dialect.Of(envelope.Clutch)
	line, _ := codec.Encode(m)
	members := map[string]jsontext.Value{}
	if json.Unmarshal(line, &members) != nil {
		return read(r.event.Seq, line)
	}
	name := string(r.Row.ID)
	if c := r.Request.Clutch; c != nil {
		name = cmp.Or(c.TaskID, name)
	}
	members["run_id"], members["thread_id"], members["task_id"] = quoted(r.Run), quoted(cmp.Or(r.Thread, r.Run)), quoted(name)
	if r.Parent != "" {
		members["parent_task_id"] = quoted(string(r.Parent))
	}
	if n := r.attempt(); n > 0 {
		members["attempt"] = jsontext.Value(strconv.Itoa(n))
	}
	meta := map[string]jsontext.Value{}
	if len(members["meta"]) > 0 && json.Unmarshal(members["meta"], &meta) != nil {
		meta = map[string]jsontext.Value{}
	}
	if source != "" {
		meta["source_id"] = quoted(source)
	}
	meta["seq"] = jsontext.Value(strconv.FormatInt(r.event.Seq, 10))
	if r.Row.Revision > 1 {
		meta["revision"] = jsontext.Value(strconv.Itoa(r.Row.Revision))
	}
	members["meta"] = encode(meta)
	return read(r.event.Seq, inOrder(members))
}

// attempt returns the number of the attempt that an event is about; 0 for none.
func (r renderer) attempt() int {
	var data struct {
		Attempt int `json:"attempt"`
	}
	if r.event.Kind != task.KindTaskStarted || json.Unmarshal(r.event.Data, &data) != nil {
		return 0
	}
	return data.Attempt
}

// order is the order of the members of an envelope, as the protocol lists them.
var order = []string{
	"v", "id", "ts", "thread_id", "run_id", "task_id", "parent_task_id", "trace", "from", "to", "type", "domain", "payload_type", "schema_ref",
	"payload", "requires", "prefers", "security", "attachments", "idempotency_key", "attempt", "meta",
}

// inOrder writes an envelope.
func inOrder(members map[string]jsontext.Value) jsontext.Value {
	line := []byte{'{'}
	for _, name := range order {
		if value := members[name]; value != nil {
			if len(line) > 1 {
				line = append(line, ',')
			}
			line = append(append(append(line, quoted(name)...), ':'), value...)
		}
	}
	return append(line, '}')
}

// Forward returns a recorded message as a message of the store: as it is if it was said in
// Clutch, and else in Clutch's words. Progress that was read after the end of its task is a
// chat.message, since nothing about a task follows its terminal message.
func Forward(seq int64, m task.Message, s Subject) (Message, bool) {
	codec, ok := dialect.Of(m.Dialect)
	if !ok {
		return Message{}, false
	}
	late := s.End > 0 && seq > s.End && (m.Act == envelope.Reports || m.Act == envelope.Waits)
	if m.Dialect == envelope.Clutch && !late {
		return read(seq, m.Body), true
	}
	if late {
		m.Act = envelope.Informs
	}
	read, _ := codec.Decode(m.Body, envelope.Legacy) // of what is refused, as much as can be read
	said := conversation.Recorded(read, m, s.Row)
	r := renderer{task.Event{Seq: seq, Time: m.Time}, s}
	said.Thread, said.Trace = cmp.Or(said.Thread, s.Thread), cmp.Or(s.Run, said.Trace)
	if s.Row.ID == "" { // it is about no task
		r.Row.ID = envelope.ID(conversation.MessageID(r.event, said.Act))
		r.Run, r.Thread = cmp.Or(said.Trace, string(r.Row.ID)), said.Thread
	}
	return r.complete(said, conversation.MessageID(r.event, said.Act), said.ID), true
}

// read takes the names out of an envelope.
func read(seq int64, line []byte) Message {
	var names struct {
		ID     string `json:"id"`
		Type   string `json:"type"`
		Run    string `json:"run_id"`
		Thread string `json:"thread_id"`
		Task   string `json:"task_id"`
		From   struct {
			Agent string `json:"agent_id"`
		} `json:"from"`
	}
	_ = json.Unmarshal(line, &names, lenient) // what is not there has no name
	return Message{
		Seq: seq, Line: line, ID: names.ID, Type: names.Type, Run: names.Run, Thread: names.Thread, Task: names.Task, From: bare(names.From.Agent),
	}
}
