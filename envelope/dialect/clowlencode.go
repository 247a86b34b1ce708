package dialect

import (
	"cmp"
	"strconv"
	"time"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Encode writes a message in the form that every reader of CLowl accepts (F12): no null or
// unknown members, ids of at most 128 characters, whole seconds, an inline context that fits,
// det only if it is true.
func (clowlCodec) Encode(m envelope.Message) (said []byte, lost []string) {
	p := performativeOf(m)
	at := m.Time
	if at.IsZero() {
		at = time.Now()
	}
	var w, body writer
	w.word("clowl", clowlVersion)
	w.word("mid", clowlID(messageID(m)))
	w.add("ts", strconv.AppendInt(nil, max(0, at.Unix()), 10))
	w.word("tid", clowlID(m.Trace))
	w.word("pid", clowlID(causeOf(m)))
	w.word("p", p)
	w.word("from", clowlID(cmp.Or(m.From, envelope.Mailboxd)))
	w.add("to", recipientsValue(m.To))
	w.word("cid", clowlID(cmp.Or(m.Thread, string(m.Task), string(m.Request.ID), m.Cause, messageID(m))))
	body.word("t", workType(m, p))
	body.add("d", clowlData(m))
	w.add("body", body.end())
	w.add("ctx", contextValue(contextOf(m)))
	if m.Deterministic {
		w.add("det", boolean(true))
	}
	return line(w.end()), clowlLosses(m)
}

// performativeOf returns the performative of an act.
func performativeOf(m envelope.Message) string {
	switch m.Act {
	case envelope.Stops:
		return "ACK"
	case envelope.Waits:
		return "PROG"
	case envelope.ReportsStatus:
		return "INF"
	case envelope.Inquires:
		return "QRY"
	case envelope.Delegates:
		if m.Tie == envelope.Oversee {
			return "QRY"
		}
	}
	for _, p := range performatives {
		if acts[p] == m.Act {
			return p
		}
	}
	return "INF"
}

// messageID returns the id of a message. A request without one has the id of its task, so that
// a repeated message counts once.
func messageID(m envelope.Message) string {
	id := m.ID
	if id == "" && asks(m.Act) {
		id = cmp.Or(string(m.Request.ID), string(m.Task))
	}
	if id == "" {
		id = NewID()
	}
	return id
}

// causeOf returns the id of the message that this one replies to. In dialects whose messages
// have no ids, that is the request of the task (CLOWL-06).
func causeOf(m envelope.Message) string {
	if m.Cause == "" && m.Dialect != envelope.CLowl && !asks(m.Act) {
		return string(m.Task)
	}
	return m.Cause
}

// clowlID shortens an id to the length that CLowl's strictest reader accepts.
func clowlID(id string) string {
	if units(id) > mostIDUnits {
		return digest(id)
	}
	return id
}

func recipientsValue(to []string) jsontext.Value {
	switch len(to) {
	case 0:
		return quoted(envelope.Everybody)
	case 1:
		return quoted(clowlID(to[0]))
	}
	short := make([]string, len(to))
	for i, name := range to {
		short[i] = clowlID(name)
	}
	return namesValue(short)
}

// workType returns body.t, which is never empty (CLOWL-11).
func workType(m envelope.Message, p string) string {
	switch {
	case p == "ERR":
		return "error"
	case p == "CAPS":
		return "capabilities"
	case m.Act == envelope.ReportsStatus:
		return "status"
	case p == "QRY" && m.Act != envelope.Asks:
		return reviewing
	case p == "QRY" && m.Type == reviewing: // about another subject, so it must not read as a review
		return "status"
	}
	return cmp.Or(m.Type, m.Request.Type, plainTypes[p])
}

var plainTypes = map[string]string{
	"REQ": "task", "DLGT": "task", "DONE": "result", "ACK": "accepted", "PROG": "progress", "CNCL": "cancel", "QRY": "status", "INF": "info",
}

// contextOf returns the context of a message; of a request in another dialect, its first
// reference.
func contextOf(m envelope.Message) envelope.Context {
	c := m.Context
	if c.Ref == "" && m.Dialect != envelope.CLowl && len(m.Request.Refs) > 0 {
		c.Ref = m.Request.Refs[0].URI
	}
	return c
}

// contextValue writes ctx; nil for an empty context. It cuts an inline text that is too long,
// because readers refuse the whole text.
func contextValue(c envelope.Context) jsontext.Value {
	var w writer
	w.word("ref", c.Ref)
	w.word("inline", cut(c.Inline, mostInline))
	if c.Ref != "" && isSum(c.Hash) {
		w.word("hash", c.Hash)
	}
	if w.text == nil {
		return nil
	}
	return w.end()
}

// cut returns the first UTF-16 units of a text, at most that many.
func cut(text string, most int) string {
	n := 0
	for at, r := range text {
		if n += utf16.RuneLen(r); n > most {
			return text[:at]
		}
	}
	return text
}
