package dialect

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Receive also reads the short forms that models are taught: that of v0.1, with cl and a
// context that is a string, and CLowl-S, with task and data instead of a body (CLOWL-38). It
// completes an incomplete message; Raw is then the completed form.
func (clowlCodec) Receive(raw []byte, about envelope.Task) (envelope.Message, envelope.Findings) {
	raw = bytes.Trim(raw, space)
	var findings envelope.Findings
	if _, findings = envelope.ContentHash(raw); findings.Refused() {
		return envelope.Message{Raw: raw, Dialect: envelope.CLowl}, attributeToAgent(findings)
	}
	raw = line(raw) // the object may extend over several lines
	s := speech{members: newFields(raw, "", &findings).members, about: about, asker: askerOf(about)}
	before := maps.Clone(s.members)
	s.upgrade()
	s.complete()
	same := func(a, b jsontext.Value) bool { return string(a) == string(b) }
	if !maps.EqualFunc(before, s.members, same) {
		raw = line(object(s.members))
	}
	m, findings := strictly(clowlCodec{}, raw)
	if m.From != "" && m.From != about.Agent && about.Agent != "" {
		findings = append(findings, envelope.Finding{Kind: envelope.IdentityMismatch, Field: "from", Message: "the agent speaks as another one"})
	}
	s.setSubject(&m)
	return m, attributeToAgent(findings)
}

// strictly reads a message and converts it to the form that every reader accepts, because it
// may be passed on.
func strictly(c Codec, raw []byte) (envelope.Message, envelope.Findings) {
	m, findings := c.Decode(raw, envelope.Strict)
	if findings.Refused() {
		return m, findings
	}
	said, _ := c.Encode(m)
	if sum, _ := envelope.ContentHash(said); sum != m.Hash {
		extra := m.Extra
		m, _ = c.Decode(said, envelope.Strict)
		m.Extra = extra
	}
	return m, findings
}

// askerOf returns the message that requested a task: the original, or its form in CLowl.
func askerOf(about envelope.Task) envelope.Message {
	if envelope.MarkedAs(about.Raw) == envelope.CLowl {
		if m, _ := (clowlCodec{}).Decode(about.Raw, envelope.Strict); TaskID(m.ID) == about.ID {
			return m
		}
	}
	id := string(about.ID)
	return envelope.Message{ID: id, Thread: cmp.Or(about.Named(envelope.ThreadID), id), Trace: about.Named("mbx.tid"), From: about.Requester}
}

// A speech is a message of an agent about its task while it is completed.
type speech struct {
	members map[string]jsontext.Value
	about   envelope.Task
	asker   envelope.Message
}

// upgrade converts the older and shorter forms to v0.2.
func (s speech) upgrade() {
	older := s.take("cl") != nil
	if version, _ := textOf(s.members["clowl"]); older || strings.HasPrefix(version, "0.1") {
		delete(s.members, "mid") // models invent these
		delete(s.members, "clowl")
	}
	if p, ok := textOf(s.members["p"]); ok {
		s.members["p"] = quoted(strings.ToUpper(p))
	}
	if ref, ok := textOf(s.members["ctx"]); ok {
		delete(s.members, "ctx")
		if ref != "" {
			s.members["ctx"] = object(map[string]jsontext.Value{"ref": quoted(ref)})
		}
	}
	body := membersOf(s.members["body"])
	if body == nil && s.members["body"] == nil {
		body = map[string]jsontext.Value{"t": or(s.take("t"), s.take("task")), "d": or(s.take("d"), s.take("data"))}
	}
	if body == nil {
		return
	}
	t, d := s.workType(body["t"]), s.data(body["d"])
	if string(t) != string(body["t"]) || string(d) != string(body["d"]) || s.members["body"] == nil {
		body["t"], body["d"] = t, d
		s.members["body"] = object(body)
	}
}

// take returns a member and removes it.
func (s speech) take(name string) jsontext.Value {
	value := s.members[name]
	delete(s.members, name)
	return value
}

func (s speech) p() string {
	p, _ := textOf(s.members["p"])
	return p
}

func (s speech) workType(t jsontext.Value) jsontext.Value {
	if text, _ := textOf(t); text != "" {
		return t
	}
	return quoted(cmp.Or(s.about.Type, plainTypes[s.p()], "info"))
}

// data returns an object; another value becomes one.
func (s speech) data(d jsontext.Value) jsontext.Value {
	name := map[string]string{"DONE": "summary", "ERR": "msg", "PROG": "note", "REQ": "description", "DLGT": "description"}[s.p()]
	switch d.Kind() {
	case '{':
		return d
	case '"':
		return object(map[string]jsontext.Value{cmp.Or(name, "text"): d})
	case '[', '0', 't', 'f':
		return object(map[string]jsontext.Value{"result": d})
	}
	return jsontext.Value("{}")
}

// complete adds the members that the runtime supplies. The trace stays the same (CLOWL-05), and
// a message about the task as a whole goes to the requester.
func (s speech) complete() {
	delete(s.members, "auth")
	s.supply("clowl", clowlVersion)
	s.supply("mid", NewID())
	s.supply("from", s.about.Agent)
	s.supply("cid", s.asker.Thread)
	if value := s.members["ts"]; value.Kind() != '0' {
		s.members["ts"] = strconv.AppendInt(nil, time.Now().Unix(), 10)
	}
	if trace, _ := textOf(s.members["tid"]); s.asker.Trace != "" && trace != s.asker.Trace {
		s.members["tid"] = quoted(s.asker.Trace)
	}
	if s.p() == "CNCL" || s.p() == "CAPS" {
		s.supply("to", envelope.Everybody)
		return
	}
	if !s.elsewhere() {
		s.supply("pid", s.asker.ID)
	}
	if slices.Contains([]string{"ACK", "PROG", "DONE", "ERR"}, s.p()) && s.own() {
		s.members["to"] = quoted(clowlID(s.about.Requester))
	}
	if s.p() != "DLGT" {
		s.supply("to", s.about.Requester)
	}
}

// supply sets a name that is missing or empty.
func (s speech) supply(member, name string) {
	if said, ok := textOf(s.members[member]); name != "" && (s.members[member].Kind() == 'n' || s.members[member] == nil || ok && said == "") {
		s.members[member] = quoted(clowlID(name))
	}
}

// elsewhere reports whether d names another task than the agent's own.
func (s speech) elsewhere() bool {
	d := membersOf(membersOf(s.members["body"])["d"])
	id, _ := textOf(d["task_id"])
	mid, _ := textOf(d["mid"])
	name := cmp.Or(id, mid)
	return name != "" && TaskID(name) != s.about.ID
}

// own reports whether the message is about the agent's own task.
func (s speech) own() bool {
	pid, _ := textOf(s.members["pid"])
	return !s.elsewhere() && (pid == clowlID(s.asker.ID) || TaskID(pid) == s.about.ID)
}

// setSubject sets the task that a message is about, and its meaning for the requester of that
// task.
func (s speech) setSubject(m *envelope.Message) {
	switch {
	case asks(m.Act):
		m.WantsReply = m.Act == envelope.Requests // its sender's run is over
		return
	case s.own():
		m.Task = s.about.ID
	}
	if m.Act == envelope.Asks || m.Act == envelope.Inquires {
		m.WantsReply = true
	}
	if m.Act == envelope.Informs && m.Type == approving && m.Task == s.about.ID {
		m.Act = envelope.Completes
		m.Answer = envelope.Result{Status: envelope.OK}
		m.Answer.Output.Summary = m.Text
		m.Answer.Output.Extra = with(m.Data, "decision", quoted("approved"))
	}
}
