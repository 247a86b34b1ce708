package dispatch

import (
	"cmp"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// A saying is one thing that the agent of a run said, on its way into the
// ledger.
type saying struct {
	message envelope.Message
	claim   *claim // what it hands on to another agent; nil for nothing
	stale   bool   // that was handed on before, and is over
}

// inWords completes what an agent said with what we know: nobody speaks as
// somebody else, and names and times are not a model's to make (CLOWL-38).
func inWords(m envelope.Message, row task.Task, talk task.Conversation, now time.Time) envelope.Message {
	m.From = row.Agent
	m.Thread, m.Trace = cmp.Or(talk.Thread, m.Thread), cmp.Or(talk.Trace, m.Trace)
	m.Dialect = cmp.Or(m.Dialect, envelope.AINL)
	if m.Time.IsZero() {
		m.Time = now
	}
	if m.Dialect == envelope.CLowl {
		m.ID, m.Cause = cmp.Or(m.ID, dialect.NewID()), cmp.Or(m.Cause, talk.Message)
	}
	if len(m.To) == 0 {
		m.To = []string{row.Requester}
	}
	return m
}

// utterAll records what an agent said in its run, as of when we heard it,
// whatever it says itself, and has it take effect.
func (d *Dispatcher) utterAll(tx *transaction, t *turn) error {
	for _, s := range t.said {
		if s.claim != nil {
			if err := d.passOn(tx, t.row, s, t.at); err != nil {
				return err
			}
			continue
		}
		about, named, err := tx.finder().resolve(s.message, t.row)
		switch {
		case err != nil:
			return err
		case !named:
			about = t.row
		}
		if cancels(s.message, about) {
			if err := d.cancelBelow(tx, t, about, s.message); err != nil {
				return err
			}
			continue
		}
		if err := d.sendOn(tx, about, s.message, t.at); err != nil {
			return err
		}
	}
	return nil
}

// sendOn records a message about a task for each of its recipients, for whose
// inboxes it is due, and wakes whom it wakes. What is onlyRecorded is in none.
func (d *Dispatcher) sendOn(tx *transaction, about task.Task, m envelope.Message, at time.Time) error {
	silent, err := onlyRecorded(tx, about, m)
	if err != nil {
		return err
	}
	for _, to := range m.To {
		inbox := d.inboxOf(to)
		if to == envelope.Ourselves || to == envelope.Everybody || silent {
			inbox = ""
		}
		if err := d.note(tx, about, m, at, to, task.ByRun, inbox); err != nil {
			return err
		}
	}
	return d.wake(tx, about, m)
}

// onlyRecorded reports whether a message about a task is in no inbox: an ACK, which we
// have sent (CLOWL-23), and the progress of a task whose requester is not told of it.
func onlyRecorded(tx *transaction, about task.Task, m envelope.Message) (bool, error) {
	if m.Act != envelope.Reports && m.Act != envelope.Waits {
		return acknowledges(m), nil
	}
	talk, known, err := tx.Talk(about.Seq)
	return known && !toldOf(talk.Tie), err
}

// acknowledges reports whether a message says that its sender has taken a task, or
// has stopped.
func acknowledges(m envelope.Message) bool {
	return m.Act == envelope.Accepts || m.Act == envelope.Stops
}

// note remembers a message about a task that is said to somebody, in their own
// words where these can say it.
func (d *Dispatcher) note(tx *transaction, about task.Task, m envelope.Message, at time.Time, to string, via task.Via, inbox string) error {
	in := d.wordsOf(to, about, m.Dialect)
	line, lost := m.Raw, []string(nil)
	if codec, ok := dialect.Of(in); ok && !sayable(m, in) {
		line, lost = codec.Encode(m)
	}
	hash, _ := envelope.ContentHash(line)
	_, err := tx.Record(task.Message{
		Time: at, Dialect: in, Act: m.Act, ID: m.ID, Cause: m.Cause, Task: about.Seq, Thread: m.Thread, Trace: m.Trace,
		From: m.From, To: to, Via: via, Hash: hash, Lost: lost, Inbox: inbox, Body: line,
	})
	return err
}

// sayable reports whether the bytes of a message are a whole line of a dialect that
// does what the message does: an answer that another one follows is only news.
func sayable(m envelope.Message, in envelope.Dialect) bool {
	codec, ok := dialect.Of(in)
	if !ok || m.Dialect != in || len(m.Raw) == 0 || slices.Contains(m.Raw, '\n') {
		return false
	}
	read, findings := codec.Decode(m.Raw, envelope.Strict)
	superseded := m.Act == envelope.Informs && (read.Act == envelope.Completes || read.Act == envelope.Fails)
	return !findings.Refused() && !superseded && read.From == m.From && read.ID == m.ID && slices.Equal(read.To, m.To)
}

// wordsOf is the dialect in which somebody hears about a task: an agent in its
// own, and whoever asked in that of the request. AINL has no words but requests
// and answers, so all else is said as it was.
func (d *Dispatcher) wordsOf(to string, about task.Task, said envelope.Dialect) envelope.Dialect {
	in := said
	switch {
	case d.agents.Known(to):
		in = d.agents.Protocol.Dialect(to)
	case to == about.Requester:
		in = about.Dialect
	}
	if in == envelope.AINL || in == "" {
		return said
	}
	return in
}
