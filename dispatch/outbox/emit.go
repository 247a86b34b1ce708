package outbox

import (
	"cmp"
	"strings"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// EmitToAll records a message about a task for each of its recipients, and wakes the tasks that
// wait for it.
func (ms *Messenger) EmitToAll(tx *store.Transaction, about task.Task, m envelope.Message, at time.Time) error {
	if err := ms.RecordForAll(tx, about, m, at); err != nil {
		return err
	}
	return ms.WakeFor(tx, about, m)
}

// RecordForAll records a message about a task for each of its recipients.
func (ms *Messenger) RecordForAll(tx *store.Transaction, about task.Task, m envelope.Message, at time.Time) error {
	silent, err := isOnlyRecorded(tx, about, m)
	if err != nil {
		return err
	}
	for _, to := range m.To {
		inbox := ms.InboxOf(to)
		if to == envelope.Mailboxd || to == envelope.Everybody || silent {
			inbox = ""
		}
		if err := ms.RecordFor(tx, about, m, at, to, task.ByRun, inbox); err != nil {
			return err
		}
	}
	return nil
}

// isOnlyRecorded reports whether a message about a task goes to no inbox. This holds for an
// ACK, since the daemon has sent one (CLOWL-23), and for the progress of a task whose requester
// isn't notified: one that asked in AINL reads the result file.
func isOnlyRecorded(tx *store.Transaction, about task.Task, m envelope.Message) (bool, error) {
	if m.Act != envelope.Reports && m.Act != envelope.Waits {
		return conversation.Acknowledges(m), nil
	}
	if about.Dialect == "" || about.Dialect == envelope.AINL {
		return true, nil
	}
	conv, known, err := tx.Conversation(about.Seq)
	return known && !conversation.Notified(conv.Tie), err
}

// RecordFor records a message about a task for a participant, in the participant's dialect if
// that can express it.
func (ms *Messenger) RecordFor(tx *store.Transaction, about task.Task, m envelope.Message, at time.Time, to string, via task.Via, inbox string) error {
	in := ms.DialectFor(to, about, m.Dialect)
	line, lost := m.Raw, []string(nil)
	if codec, ok := dialect.Of(in); ok && !deliverable(codec, m, in) {
		line, lost = codec.Encode(m)
	}
	record := RecordOf(withLine(m, in, line), via, about.Seq, at)
	record.To, record.Lost, record.Inbox = to, lost, inbox
	_, err := tx.Record(record)
	return err
}

// deliverable reports whether the line of a message can be delivered unchanged in a dialect.
func deliverable(codec dialect.Codec, m envelope.Message, in envelope.Dialect) bool {
	if m.Dialect != in || len(m.Raw) == 0 {
		return false
	}
	read, findings := codec.Decode(m.Raw, envelope.Strict)
	return !findings.Refused() && conversation.Deliverable(m, read)
}

// DialectFor returns the dialect in which a participant gets a message about a task.
func (ms *Messenger) DialectFor(to string, about task.Task, own envelope.Dialect) envelope.Dialect {
	reads := envelope.Dialect("")
	if ms.Agents.Known(to) {
		reads = cmp.Or(ms.Agents.Protocol.Dialect(to), envelope.AINL)
	}
	return conversation.DialectFor(to, reads, about, own)
}

// Emit records a message of the daemon in a dialect, for an inbox.
func (ms *Messenger) Emit(tx *store.Transaction, in envelope.Dialect, m envelope.Message, task int64, inbox string) error {
	record, ok := outgoing(in, m, task, inbox)
	if !ok {
		return nil // the dialect has no codec
	}
	if in == envelope.Clutch && conversation.Concludes(m) {
		ms.sign(&record)
	}
	_, err := tx.Record(record)
	return err
}

// sign signs a message in Clutch to a sender that has keys. Without a key of its own, mailboxd sends the message unsigned.
func (ms *Messenger) sign(record *task.Message) {
	if !ms.Agents.Protocol.Signatures().Has(record.To) {
		return
	}
	line, err := ms.Agents.Protocol.Sign(record.Body)
	if err != nil {
		ms.Opts.Log.Error().Err(err).Str("to", record.To).Str("message", record.ID).Msg("message not signed")
		return
	}
	record.Body = line
	record.Hash, _ = envelope.ContentHash(line)
}

// outgoing returns the record of a message of the daemon in a dialect, and whether the dialect
// has a codec.
func outgoing(in envelope.Dialect, m envelope.Message, seq int64, inbox string) (task.Message, bool) {
	codec, ok := dialect.Of(in)
	if !ok {
		return task.Message{}, false
	}
	if m.ID == "" {
		m.ID = dialect.NewMessageID(in)
	}
	line, lost := codec.Encode(m)
	record := RecordOf(withLine(m, in, line), task.ByDaemon, seq, cmp.Or(m.Time, time.Now()))
	record.Lost, record.Inbox = lost, inbox
	return record, true
}

// withLine returns a message with its line in a dialect.
func withLine(m envelope.Message, in envelope.Dialect, line []byte) envelope.Message {
	m.Dialect, m.Raw = in, line
	m.Hash, _ = envelope.ContentHash(line)
	return m
}

// RecordOf returns the record of a message.
func RecordOf(m envelope.Message, via task.Via, seq int64, at time.Time) task.Message {
	return task.Message{
		Time: at, Dialect: m.Dialect, Act: m.Act, ID: m.ID, Cause: m.Cause, Task: seq, Thread: m.Thread, Trace: m.Trace,
		From: m.From, To: strings.Join(m.To, ","), Via: via, Hash: m.Hash, Body: m.Raw,
	}
}
