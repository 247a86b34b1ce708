package dispatch

import (
	"cmp"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// A saying is one thing that the agent of a run said, on its way into the
// ledger.
type saying struct {
	message envelope.Message
	claim   *claim // what it hands on to another agent; nil for nothing
	stale   bool   // that was handed on before, and is over
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
		if conversation.Cancels(s.message, about) {
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
		return conversation.Acknowledges(m), nil
	}
	talk, known, err := tx.Talk(about.Seq)
	return known && !conversation.Notified(talk.Tie), err
}

// note remembers a message about a task that is said to somebody, in their own
// words where these can say it.
func (d *Dispatcher) note(tx *transaction, about task.Task, m envelope.Message, at time.Time, to string, via task.Via, inbox string) error {
	in := d.dialectFor(to, about, m.Dialect)
	line, lost := m.Raw, []string(nil)
	if codec, ok := dialect.Of(in); ok && !deliverable(codec, m, in) {
		line, lost = codec.Encode(m)
	}
	hash, _ := envelope.ContentHash(line)
	_, err := tx.Record(task.Message{
		Time: at, Dialect: in, Act: m.Act, ID: m.ID, Cause: m.Cause, Task: about.Seq, Thread: m.Thread, Trace: m.Trace,
		From: m.From, To: to, Via: via, Hash: hash, Lost: lost, Inbox: inbox, Body: line,
	})
	return err
}

// deliverable reports whether the line of a message can be delivered in a dialect as it is.
func deliverable(codec dialect.Codec, m envelope.Message, in envelope.Dialect) bool {
	if m.Dialect != in || len(m.Raw) == 0 {
		return false
	}
	read, findings := codec.Decode(m.Raw, envelope.Strict)
	return !findings.Refused() && conversation.Deliverable(m, read)
}

// dialectFor returns the dialect in which a participant gets a message about a task.
func (d *Dispatcher) dialectFor(to string, about task.Task, own envelope.Dialect) envelope.Dialect {
	reads := envelope.Dialect("")
	if d.agents.Known(to) {
		reads = cmp.Or(d.agents.Protocol.Dialect(to), envelope.AINL)
	}
	return conversation.DialectFor(to, reads, about, own)
}
