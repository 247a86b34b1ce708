package dialect

import (
	"bytes"
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Receive also reads a message without the members that the runtime supplies: v, id, ts, run,
// thread, task, parent, from, to and attempt come from the task. It completes an incomplete
// message; Raw is then the completed form.
func (clutchCodec) Receive(raw []byte, about envelope.Task) (envelope.Message, envelope.Findings) {
	raw = bytes.Trim(raw, space)
	if _, findings := envelope.ContentHash(raw); findings.Refused() {
		return envelope.Message{Raw: raw, Dialect: envelope.Clutch}, attributeToAgent(findings)
	}
	raw = line(raw) // the object may extend over several lines
	var findings envelope.Findings
	s := clutchSpeech{members: newFields(raw, "", &findings).members, about: about, asker: clutchAsker(about)}
	before := maps.Clone(s.members)
	s.complete()
	same := func(a, b jsontext.Value) bool { return string(a) == string(b) }
	if !maps.EqualFunc(before, s.members, same) {
		raw = line(object(s.members))
	}
	m, findings := strictly(clutchCodec{}, raw)
	if m.From != about.Agent && about.Agent != "" && m.From != "" {
		findings = append(findings, envelope.Finding{Kind: envelope.IdentityMismatch, Field: "from.agent_id", Message: "the agent speaks as another one"})
	}
	s.setSubject(&m)
	return m, attributeToAgent(findings)
}

// clutchAsker returns the message that requested a task: the original, or its form in Clutch.
func clutchAsker(about envelope.Task) envelope.Message {
	if envelope.MarkedAs(about.Raw) == envelope.Clutch {
		if m, _ := (clutchCodec{}).Decode(about.Raw, envelope.Strict); m.Task == about.ID {
			return m
		}
	}
	id := string(about.ID)
	return envelope.Message{
		ID: id, Thread: cmp.Or(about.Named(envelope.ThreadID), id), Task: about.ID, From: about.Requester,
		Clutch: &envelope.ClutchPart{TaskID: id, RunID: cmp.Or(about.Named("mbx.run_id"), about.Named("mbx.tid"), id)},
	}
}

// A clutchSpeech is a message of an agent about its task while it is completed.
type clutchSpeech struct {
	members map[string]jsontext.Value
	about   envelope.Task
	asker   envelope.Message
}

func (s clutchSpeech) word() string {
	word, _ := textOf(s.members["type"])
	return word
}

// complete adds the members that the runtime supplies.
func (s clutchSpeech) complete() {
	task := s.asker.Clutch.TaskID
	s.supply("v", clutchVersion)
	s.supply("id", NewMessageID(envelope.Clutch))
	s.supply("run_id", s.asker.Clutch.RunID)
	s.supply("thread_id", s.asker.Thread)
	if stamp, _ := textOf(s.members["ts"]); stamp == "" {
		s.members["ts"] = quoted(time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if s.members["payload"] == nil {
		s.members["payload"] = jsontext.Value("{}")
	}
	if s.members["from"].Kind() != '{' && s.about.Agent != "" {
		s.members["from"] = senderValue(s.about.Agent, "")
	}
	if s.word() == "task.request" {
		s.delegate(task)
	} else {
		s.supply("task_id", task)
	}
	if s.about.Requester != "" && (s.reports() || s.word() != "task.request" && !someItems(s.members["to"])) {
		s.members["to"] = array([]jsontext.Value{senderValue(s.about.Requester, "")})
	}
	s.echo()
	if attempt := s.asker.Clutch.Attempt; attempt > 1 && s.members["attempt"] == nil {
		s.members["attempt"] = strconv.AppendInt(nil, int64(attempt), 10)
	}
}

// echo adds the trace and the domain of the request. A delegation may have another domain.
func (s clutchSpeech) echo() {
	asked := s.asker.Clutch
	if trace := traceValue(asked.Trace); trace != nil && s.members["trace"] == nil {
		s.members["trace"] = trace
	}
	if s.word() != "task.request" {
		s.supply("domain", asked.Domain)
	}
}

// reports reports whether the message is about the agent's task as a whole. Such a message goes
// to the requester, whatever recipient it names.
func (s clutchSpeech) reports() bool {
	task, _ := textOf(s.members["task_id"])
	return task == s.asker.Clutch.TaskID && strings.HasPrefix(s.word(), "task.") && s.word() != "task.request" && s.word() != "task.cancel"
}

// someItems reports whether a value is a list that is not empty.
func someItems(list jsontext.Value) bool {
	var items []jsontext.Value
	return list.Kind() == '[' && unmarshal(list, &items) && len(items) > 0
}

// delegate completes a request of an agent: the same delegation always gets the same task id,
// and the agent's own task is its parent (CLUTCH-23).
func (s clutchSpeech) delegate(above string) {
	s.supply("parent_task_id", above)
	if id, _ := textOf(s.members["task_id"]); id == "" || id == above {
		delete(s.members, "task_id")
		content := maps.Clone(s.members)
		for _, name := range []string{"id", "ts"} {
			delete(content, name)
		}
		sum, _ := envelope.ContentHash(object(content))
		s.members["task_id"] = quoted(above + "." + sum[:8])
	}
	if s.members["to"].Kind() != '[' {
		s.members["to"] = jsontext.Value("[]")
	}
}

// supply sets a name that is missing or empty.
func (s clutchSpeech) supply(member, name string) {
	if said, ok := textOf(s.members[member]); name != "" && (s.members[member] == nil || s.members[member].Kind() == 'n' || ok && said == "") {
		s.members[member] = quoted(name)
	}
}

// setSubject sets the meaning of the message for the requester of the task.
func (s clutchSpeech) setSubject(m *envelope.Message) {
	switch {
	case asks(m.Act):
		m.WantsReply = m.Act == envelope.Requests
	case m.Act == envelope.Asks || m.Act == envelope.Inquires:
		m.WantsReply = true
	}
}

// speaksClutch reports whether an invalid object was meant to be a message.
func speaksClutch(object map[string]jsontext.Value) bool {
	word, _ := textOf(object["type"])
	version, _ := textOf(object["v"])
	return strings.HasPrefix(version, "clutch/") || clutchActs[word] != ""
}
