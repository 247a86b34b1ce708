package dialect

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// clutchCodec is Clutch Protocol v0, in which every message names a run, a thread and a task.
type clutchCodec struct{}

// clutchVersion is the only supported version of Clutch (CLUTCH-01).
const clutchVersion = "clutch/0.1"

// mostClutchID is the length of the longest accepted id of Clutch, in bytes. The protocol has
// no limit.
const mostClutchID = 512

// clutchActs are the 17 types of Clutch (CLUTCH-11), each with its act.
var clutchActs = map[string]envelope.Act{
	"task.request": envelope.Requests, "task.accept": envelope.Accepts, "task.progress": envelope.Reports,
	"task.result": envelope.Completes, "task.error": envelope.Fails, "task.cancel": envelope.Cancels, "task.timeout": envelope.Fails,
	"chat.message": envelope.Informs, "chat.system": envelope.Informs,
	"tool.call": envelope.Calls, "tool.result": envelope.Returns, "tool.error": envelope.FailsTool,
	"agent.register": envelope.Announces, "agent.heartbeat": envelope.SendsHeartbeat, "agent.update": envelope.Updates,
	"routing.decision": envelope.Routes, "routing.failure": envelope.FailsToRoute,
}

// ClutchTypes returns the types of Clutch, in order.
func ClutchTypes() []string { return slices.Sorted(maps.Keys(clutchActs)) }

// legacyTypes are the types before v0, each with its type in v0 (CLUTCH-74).
var legacyTypes = map[string]string{
	"PLAN": "task.request", "PROPOSAL": "task.progress", "EXEC_REPORT": "task.result", "REVIEW": "task.result", "BLOCKER": "task.error",
}

// A clutchReading is a Message being read.
type clutchReading struct {
	fields
	message  envelope.Message
	part     *envelope.ClutchPart
	findings envelope.Findings
	payload  fields // without members if the payload is no object
	meta     fields // without members if there is no meta
}

func (clutchCodec) Decode(raw []byte, _ envelope.Reading) (envelope.Message, envelope.Findings) {
	r := openClutch(raw)
	if r.members != nil && !r.card() {
		r.version()
		r.head()
		r.parties()
		r.material()
		r.act()
		r.keep(r.fields)
		r.ask()
	}
	return r.message, r.findings
}

// openClutch reads an object. The reading has no members if no part of the object is reliable;
// its message then has the fields that an answer to the sender needs.
func openClutch(raw []byte) *clutchReading {
	r := &clutchReading{part: new(envelope.ClutchPart)}
	m := &r.message
	m.Raw, m.Dialect, m.Clutch = bytes.Trim(raw, space), envelope.Clutch, r.part
	if m.Hash, r.findings = envelope.ContentHash(m.Raw); r.findings.Refused() {
		m.ID, m.Thread, m.Task = envelope.Scrap(m.Raw, "id"), envelope.Scrap(m.Raw, "thread_id"), envelope.Salvage(m.Raw)
		return r
	}
	r.fields = newFields(m.Raw, "", &r.findings)
	return r
}

// card refuses an AgentCard by its name: it is no message.
func (r *clutchReading) card() bool {
	if !r.has("capabilities") || r.has("type") {
		return false
	}
	r.refuse("", "is an AgentCard, not a message: announce it in the payload of an agent.register, or name its file in the configuration (agents[].card)")
	return true
}

func (r *clutchReading) version() {
	switch said, is := textOf(r.required("v")); {
	case is && said == clutchVersion:
	case is:
		r.note(envelope.UnsupportedVersion, "v", `is another version, only "clutch/0.1" is supported`)
	case r.has("v"):
		r.refuse("v", `must be the string "clutch/0.1"`)
	}
}

// head reads the ids of a message, its run, its thread and its task (CLUTCH-02 to CLUTCH-08).
func (r *clutchReading) head() {
	m, c := &r.message, r.part
	m.ID = r.id("id", r.required("id"))
	m.Time = r.time(r.required("ts"))
	m.Thread = r.id("thread_id", r.required("thread_id"))
	c.RunID = r.id("run_id", r.required("run_id"))
	m.Trace = c.RunID
	c.TaskID = r.id("task_id", r.required("task_id"))
	m.Task = TaskID(c.TaskID)
	c.Parent = TaskID(r.id("parent_task_id", r.member("parent_task_id")))
	if c.Parent != "" && c.Parent == m.Task {
		r.refuse("parent_task_id", "must not be the task itself")
	}
	if trace := r.within("trace"); trace.members != nil {
		c.Trace = envelope.Trace{
			TraceID: trace.name("trace_id", trace.member("trace_id")),
			SpanID:  trace.name("span_id", trace.member("span_id")),
		}
		r.keep(trace)
	}
}

// keep keeps the unknown members of the message or, under its path, of an object within it
// (CLUTCH-22).
func (r *clutchReading) keep(f fields) {
	m := &r.message
	switch unknown := f.unknown(); {
	case unknown == nil:
	case f.path != "":
		m.Extra = with(m.Extra, strings.TrimSuffix(f.path, "."), unknown)
	default:
		all := membersOf(unknown)
		maps.Copy(all, membersOf(m.Extra))
		m.Extra = object(all)
	}
}

// within returns the object under a name; without members if there is none.
func (f fields) within(name string) fields {
	value := f.member(name)
	if value == nil {
		return fields{}
	}
	return newFields(value, f.path+name+".", f.findings)
}

// id reads the name of a message, a thread, a run, a task or a participant.
func (f fields) id(field string, value jsontext.Value) string {
	name := f.name(field, value)
	if len(name) > mostClutchID {
		f.refuse(field, "is longer than 512 bytes")
		return ""
	}
	return name
}

// parties reads the sender and the recipients (CLUTCH-09, CLUTCH-10).
func (r *clutchReading) parties() {
	m, c := &r.message, r.part
	r.required("from")
	if from := r.within("from"); from.members != nil {
		if sender, ok := from.party("agent_id"); ok && sender.Group {
			from.refuse("agent_id", "must be an agent, not a group")
		} else {
			m.From = sender.Name
		}
		c.Role = from.name("role", from.member("role"))
		r.keep(from)
	}
	for i, item := range r.list("to", r.required("to")) {
		to := newFields(item, indexed("to", i)+".", r.fields.findings)
		if to.members == nil {
			continue
		}
		recipient, ok := to.party("agent_id")
		to.name("role", to.member("role"))
		r.keep(to)
		if ok && !slices.Contains(c.Recipients, recipient) {
			c.Recipients, m.To = append(c.Recipients, recipient), append(m.To, recipient.String())
		}
	}
}

// The prefixes of participants (CLUTCH-75).
const (
	agentPrefix = "agent:"
	groupPrefix = "group:"
)

// party reads a participant and removes exactly one prefix.
func (f fields) party(field string) (who envelope.Recipient, ok bool) {
	name := f.id(field, f.required(field))
	if name == "" {
		return envelope.Recipient{}, false
	}
	rest, group := strings.CutPrefix(name, groupPrefix)
	agent := false
	if !group {
		rest, agent = strings.CutPrefix(name, agentPrefix)
	}
	switch {
	case rest == "":
		f.refuse(field, "has no name after its prefix")
		return envelope.Recipient{}, false
	case rest == envelope.Everybody:
		f.refuse(field, `must not be "*"`)
		return envelope.Recipient{}, false
	case !group && !agent:
		f.note("", field, `should begin with "agent:"`)
	}
	return envelope.Recipient{Name: rest, Group: group}, true
}
