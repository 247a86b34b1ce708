package dialect

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Encode writes a request as an AgentTaskRequest and an answer as an AgentTaskResult. AINL has
// no other messages: those, and an answer without a task, become notes for an agent that reads
// its conversation.
func (ainlCodec) Encode(m envelope.Message) (said []byte, lost []string) {
	switch {
	case m.Dialect == envelope.AINL && m.Raw != nil && jsontext.Value(m.Raw).Kind() == '{':
		return line(m.Raw), nil
	case asks(m.Act):
		return line(ainlRequest(m)), ainlLosses(m)
	case m.Task == "" && m.Cause == "" && m.Answer.TaskID == "":
	case m.Act == envelope.Completes, m.Act == envelope.Fails, m.Act == envelope.Stops:
		return bytes.TrimSpace(ainlResult(m).EncodeLine()), ainlLosses(m)
	}
	return line(ainlNote(m)), ainlLosses(m)
}

// ainlResult returns the answer of a message, with the members that only the message has.
func ainlResult(m envelope.Message) envelope.Result {
	r := m.Answer
	r.TaskID = cmp.Or(r.TaskID, m.Task, TaskID(m.Cause))
	r.AgentID = cmp.Or(r.AgentID, m.From)
	r.Output.Summary = cmp.Or(r.Output.Summary, m.Text, m.Failure.Message)
	for _, at := range []*time.Time{&r.Time.Started, &r.Time.Finished} {
		if at.IsZero() {
			*at = m.Time
		}
	}
	switch m.Act {
	case envelope.Completes:
		r.Status = cmp.Or(r.Status, envelope.OK)
		return r
	case envelope.Stops:
		r.Status = envelope.Stopped
	default:
		r.Status = cmp.Or(r.Status, envelope.Failed)
	}
	f := failureOf(r)
	r.Error.Kind = cmp.Or(r.Error.Kind, m.Failure.Kind, f.Kind)
	r.Error.Message = cmp.Or(r.Error.Message, m.Failure.Message, f.Message)
	return r
}

// ainlNote returns a message that is neither a request nor an answer.
func ainlNote(m envelope.Message) jsontext.Value {
	var w writer
	w.word("act", string(m.Act))
	w.word("message_id", m.ID)
	w.word("reply_to", m.Cause)
	w.word("task_id", string(m.Task))
	w.word("thread_id", m.Thread)
	w.word("from", m.From)
	if len(m.To) > 0 {
		w.add("to", namesValue(m.To))
	}
	if !m.Time.IsZero() {
		w.word("time", m.Time.UTC().Format(time.RFC3339Nano))
	}
	w.word("type", m.Type)
	w.word("text", m.Text)
	w.add("data", m.Data)
	if len(m.Attachments) > 0 {
		w.add("attachments", attachmentsValue(m.Attachments))
	}
	return w.end()
}

// ainlLosses returns what AINL has no members for (docs/dialects.md).
func ainlLosses(m envelope.Message) []string {
	var lost losses
	switch m.Dialect {
	case envelope.CLowl:
		lost.add("det", m.Deterministic)
		lost.add("cid", m.Thread != "")
		lost.add("tid", m.Trace != "")
		lost.add("pid", m.Cause != "")
		lost.add("inline", m.Context.Inline != "")
		lost.add("hash", m.Context.Hash != "")
		lost.add("multicast", len(m.To) > 1 || slices.Contains(m.To, envelope.Everybody))
		lost.add("ACK", m.Act == envelope.Accepts || m.Act == envelope.Stops)
		lost.add("PROG", m.Act == envelope.Reports || m.Act == envelope.Waits)
	case envelope.CAP:
		lost.add("attachment kinds", len(m.Attachments) > 0)
		lost.add("chat", m.Act == envelope.Informs || m.Act == envelope.Asks)
		lost.add("overseer loop", m.Act == envelope.Inquires || m.Tie == envelope.Oversee)
	case envelope.Clutch:
		lost.clutch(m)
		lost.add("run", true)
		lost.add("progress", m.Act == envelope.Accepts || m.Act == envelope.Reports || m.Act == envelope.Waits)
		lost.add("multicast", len(m.To) > 1)
	}
	lost.add("unknown fields", m.Extra != nil)
	return lost
}
