package dispatch

import (
	"cmp"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// deny refuses a message and tells its sender why, in its own words, once. A request has
// a result file too, unless its id is that of another one. Nothing else comes of it.
func (d *Dispatcher) deny(tx *transaction, c *claim, why ...envelope.Finding) error {
	if c.task.ID != "" {
		last, known, err := tx.Latest(c.task.ID)
		switch {
		case err != nil:
			return err
		case !known:
			return d.refuseRequest(tx, c, why)
		case last.Hash == c.task.Hash:
			return d.ignoreDuplicate(tx, c, last)
		}
	}
	c.fate, c.verdict = unnamed, task.Verdict{Findings: why}
	if err := tx.Log(lineRejected(c)); err != nil {
		return err
	}
	return d.complainTo(tx, c, dialect.FailureOf(c.verdict.Findings.Kind(), c.verdict.Findings.Refusals().String()))
}

// refuseRequest adds the task of a request that is refused for what it is or who sends it, as
// rejected. Whoever asked is told of that as of any end.
func (d *Dispatcher) refuseRequest(tx *transaction, c *claim, why envelope.Findings) error {
	c.heard.answer, c.above, c.parent, c.tie = nil, nil, nil, ""
	c.verdict = task.Verdict{Findings: why}
	c.refuse()
	return d.enter(tx, c, task.Task{}, false)
}

// complainTo tells the sender of a message what is wrong with it, unless it was
// told when the line was read before.
func (d *Dispatcher) complainTo(tx *transaction, c *claim, why envelope.Failure) error {
	if to := c.heard.message; c.line.Replayed {
		told, err := tx.Replies(cmp.Or(to.ID, to.Cause), envelope.Fails, envelope.Ourselves, time.Time{})
		if err != nil || len(told) > 0 {
			return err
		}
	}
	return d.reply(tx, c, envelope.Message{Act: envelope.Fails, Type: "error", Text: why.Message, Failure: why})
}

// reply says something to the sender of a message, in its dialect, unless that
// is nobody.
func (d *Dispatcher) reply(tx *transaction, c *claim, m envelope.Message) error {
	to := c.heard.message
	if to.From == "" || to.From == envelope.Everybody || to.From == envelope.Ourselves {
		return nil
	}
	m.Task, m.Cause, m.Thread, m.Trace = to.Task, to.ID, cmp.Or(to.Thread, to.ID, envelope.Ourselves), to.Trace
	if to.Dialect == envelope.CAP {
		m.Cause = cmp.Or(to.ID, to.Cause) // by which its sender knows the task, where that is no name for a file
	}
	m.From, m.Time = cmp.Or(m.From, envelope.Ourselves), c.now
	if m.To == nil {
		m.To = []string{to.From}
	}
	return d.emit(tx, to.Dialect, m, c.row.Seq, d.inboxOf(to.From))
}

// emit records what we say in a dialect, to be put into an inbox.
func (d *Dispatcher) emit(tx *transaction, in envelope.Dialect, m envelope.Message, task int64, inbox string) error {
	record, ok := outgoing(in, m, task, inbox)
	if !ok {
		return nil // nobody speaks it
	}
	_, err := tx.Record(record)
	return err
}

// outgoing is what we say in a dialect as it is remembered, and whether that dialect
// is spoken.
func outgoing(in envelope.Dialect, m envelope.Message, seq int64, inbox string) (task.Message, bool) {
	codec, ok := dialect.Of(in)
	if !ok {
		return task.Message{}, false
	}
	if m.ID == "" && in == envelope.CLowl {
		m.ID = dialect.NewID()
	}
	line, lost := codec.Encode(m)
	m.Raw, m.Dialect = line, in
	m.Hash, _ = envelope.ContentHash(line)
	record := recordOf(m, task.ByDaemon, seq, cmp.Or(m.Time, time.Now()))
	record.Lost, record.Inbox = lost, inbox
	return record, true
}

// recordOf is a message as it is remembered.
func recordOf(m envelope.Message, via task.Via, seq int64, at time.Time) task.Message {
	return task.Message{
		Time: at, Dialect: m.Dialect, Act: m.Act, ID: m.ID, Cause: m.Cause, Task: seq, Thread: m.Thread, Trace: m.Trace,
		From: m.From, To: strings.Join(m.To, ","), Via: via, Hash: m.Hash, Body: m.Raw,
	}
}
