package dialect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Encode writes a message in CAP, which has text and attachments. The machine-readable data of
// another dialect become an attachment.
func (capCodec) Encode(m envelope.Message) (said []byte, lost []string) {
	at := m.Time
	if at.IsZero() {
		at = time.Now()
	}
	return capLine(m, at), capLosses(m)
}

// capLine writes a message, with its time unless that is zero (CAP-11).
func capLine(m envelope.Message, at time.Time) []byte {
	word := capType(m.Act)
	var w writer
	w.word("type", word)
	w.word("task_id", capTask(m))
	w.word("sender_id", cmp.Or(m.From, envelope.Mailboxd))
	w.word("recipient_id", cmp.Or(strings.Join(m.To, ","), envelope.Everybody))
	words := capText(m)
	if word == "error_response" {
		var code int
		code, words = capCode(capWrong(m))
		w.add("error_code", strconv.AppendInt(nil, int64(code), 10))
	}
	w.add(capWords[word], quoted(words))
	if list := capThings(m); word == "delegation_notice" || word != "error_response" && len(list) > 0 {
		w.add("attachments", attachmentsValue(list))
	}
	if !at.IsZero() {
		w.word("timestamp", at.UTC().Format(time.RFC3339Nano))
	}
	if m.Dialect == envelope.CAP { // CAP's own text, which only its sender may leave out
		if m.WantsReply && word == "message" {
			w.add(expectsReply, jsontext.Value("true"))
		}
		others := membersOf(m.Extra)
		for _, name := range slices.Sorted(maps.Keys(others)) {
			w.add(name, others[name])
		}
	}
	return line(w.end())
}

func capType(a envelope.Act) string {
	switch a {
	case envelope.Requests, envelope.Delegates:
		return "delegation_notice"
	case envelope.Fails, envelope.Cancels, envelope.Stops:
		return "error_response"
	case envelope.Inquires:
		return "oversight_inquiry"
	}
	return "message"
}

// capTask returns the task_id that a message is about: the sender's name for the task, or the
// requester's.
func capTask(m envelope.Message) string {
	for _, name := range []string{m.ID, m.Cause} {
		if name != "" && TaskID(name) == m.Task {
			return name
		}
	}
	return cmp.Or(string(m.Task), m.Cause, m.Thread, m.ID, envelope.Mailboxd)
}

// capWrong returns the failure that a message reports.
func capWrong(m envelope.Message) envelope.Failure {
	f := m.Failure
	if m.Act != envelope.Fails && f.Kind == "" {
		f.Kind = envelope.Cancelled
	}
	f.Kind = cmp.Or(f.Kind, m.Answer.Error.Kind, envelope.AgentError)
	f.Message = cmp.Or(f.Message, m.Answer.Error.Message, m.Text, m.Answer.Output.Summary)
	return f
}

// capText returns the text of a message. The task type, for which CAP has no member, is the
// first line (mapping 2.3).
func capText(m envelope.Message) string {
	switch {
	case m.Dialect == envelope.CAP:
		return m.Text
	case m.Act == envelope.Completes:
		return cmp.Or(m.Answer.Output.Summary, m.Text)
	case m.Act == envelope.Reports:
		return reported(m)
	case m.Act == envelope.Announces:
		return "takes: " + strings.Join(m.Supports, ", ")
	case m.Act == envelope.Accepts || m.Act == envelope.Waits || m.Type == CAPDelegation:
		return cmp.Or(m.Text, plainWords[m.Act])
	case m.Type != "" && m.Text != "":
		return m.Type + "\n" + m.Text
	}
	return cmp.Or(m.Type, m.Text, plainWords[m.Act])
}

// plainWords are the texts of messages without a text of their own.
var plainWords = map[envelope.Act]string{
	envelope.Accepts: "Accepted.", envelope.Waits: "Waiting.", envelope.Asks: "How far is it?",
}

// reported returns progress as text: "40%: reading" (mapping 2.5).
func reported(m envelope.Message) string {
	var done struct {
		Pct  jsontext.Value `json:"pct"`
		Note jsontext.Value `json:"note"`
	}
	unmarshal(m.Data, &done)
	if m.Dialect == envelope.Clutch {
		done.Pct = progressOf(m)
	}
	note, _ := textOf(done.Note)
	note = cmp.Or(m.Text, note)
	switch {
	case done.Pct.Kind() != '0':
		return cmp.Or(note, "Working.")
	case note == "":
		return string(done.Pct) + "%"
	}
	return string(done.Pct) + "%: " + note
}
