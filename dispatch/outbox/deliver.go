package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// InboxOf returns the file below the mailbox to which messages for a participant are
// appended: the inbox of an agent that fetches its tasks, or agents/<name>/inbox.jsonl.
// A name that no file can have is digested.
func (ms *Messenger) InboxOf(name string) string {
	if file := ms.Agents.Inbox(name).File; file != "" {
		return file
	}
	if id, err := envelope.ParseID(name); err != nil || id == "." {
		sum := sha256.Sum256([]byte(name))
		name = "h-" + hex.EncodeToString(sum[:16])
	}
	return "agents/" + name + "/inbox.jsonl"
}

// deliverBatchSize is how many messages are posted at once.
const deliverBatchSize = 64

// A round delivers what is due past inboxes that can't be written for a reason of their
// own: their messages stay due, in order, until the next round. The zero value begins
// with the oldest message.
type round struct {
	closed map[string]bool // the inboxes that cannot be written; nil: none
	after  int64           // the last message that was looked at
}

// deliverDue appends the messages that are due to their inboxes, in order, and records
// that. After a crash between the two an inbox has a line twice, with the same name. It
// goes on with a round, and returns the round as it is then. An error concerns all
// inboxes, and ends the round.
func (ms *Messenger) deliverDue(ctx context.Context, r round) (round, error) {
	for {
		due, err := ms.Ledger.Due(ctx, r.after, deliverBatchSize)
		switch {
		case err != nil:
			return round{}, err
		case len(due) == 0 && r.closed == nil:
			return round{}, nil
		case len(due) == 0:
			return r, nil
		}
		if err := ms.deliverBatch(ctx, due, &r); err != nil {
			return round{}, err
		}
		r.after = due[len(due)-1].Seq
	}
}

// deliverBatch delivers some messages, except to closed inboxes. An inbox that can't be
// written is closed.
func (ms *Messenger) deliverBatch(ctx context.Context, due []task.Message, r *round) error {
	var posted []int64
	var failed error
	for _, b := range bundles(due) {
		if r.closed[b.inbox] {
			continue
		}
		own := "messages cannot be put into " + b.inbox
		err := ms.Box.AppendInbox(b.inbox, bytes.Join(b.lines, []byte("\n")))
		if err == nil {
			ms.FaultLog.Clear(own)
			posted = append(posted, b.seqs...)
			continue
		}
		if _, everybodys := store.MachineHint(err); everybodys {
			failed = err
			break
		}
		ms.FaultLog.Report(own, task.Task{}, err)
		r.close(b.inbox)
	}
	if len(posted) == 0 {
		return failed
	}
	fault.Point("posted")
	err := ms.writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error { // the lines are in the inbox already
		for _, seq := range posted {
			if err := tx.MarkDelivered(seq, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	return err
}

func (r *round) close(inbox string) {
	if r.closed == nil {
		r.closed = map[string]bool{}
	}
	r.closed[inbox] = true
}

// A bundle is what is appended to an inbox at once.
type bundle struct {
	inbox string
	lines [][]byte
	seqs  []int64
}

// bundles groups messages by inbox, in the order of the first message of each.
func bundles(due []task.Message) (all []*bundle) {
	of := map[string]*bundle{}
	for _, m := range due {
		b := of[m.Inbox]
		if b == nil {
			b = &bundle{inbox: m.Inbox}
			of[m.Inbox] = b
			all = append(all, b)
		}
		b.lines, b.seqs = append(b.lines, posted(m)), append(b.seqs, m.Seq)
	}
	return all
}

// posted returns the line of a message as its recipient gets it: in the strict form of
// its dialect, with a time. The ledger keeps the sender's form.
func posted(m task.Message) []byte {
	codec, ok := dialect.Of(m.Dialect)
	if !ok || m.Dialect == envelope.AINL || m.Via == task.ByDaemon {
		return m.Body
	}
	said, findings := codec.Decode(m.Body, envelope.Strict)
	if findings.Refused() {
		return m.Body // it was taken as it is
	}
	if said.Time.IsZero() {
		said.Time = m.Time
	}
	said.Extra = nil
	line, _ := codec.Encode(said)
	return line
}

// InboxLine is a task as it stands in the inbox of its agent, the same each time:
// in AINL the exact bytes of its request, and else the form of it that every
// reader of its agent's dialect takes, with its time.
func (ms *Messenger) InboxLine(row task.Task, raw []byte) ([]byte, error) {
	speaks := ms.Agents.Protocol.Dialect(row.Agent)
	retold := speaks != cmp.Or(row.Dialect, envelope.AINL)
	if retold {
		t, _ := dialect.DecodeTask(row.Dialect, raw, ms.Opts.Reading)
		raw = dialect.Retell(t, speaks)
	}
	codec, ok := dialect.Of(speaks)
	if !ok || speaks == envelope.AINL {
		return oneLine(raw)
	}
	m, findings := codec.Decode(raw, ms.Opts.Reading)
	if findings.Refused() {
		return oneLine(raw) // it was taken as it is
	}
	if retold || m.Time.IsZero() {
		m.Time = row.Received
	}
	m.Extra = nil
	line, _ := codec.Encode(m)
	return line, nil
}

// oneLine returns the exact bytes of a task, without the line ends that one
// from elsewhere than a line may have.
func oneLine(raw []byte) ([]byte, error) {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw, nil
	}
	return jsontext.AppendFormat(nil, raw, jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
}

// recallTask notifies an agent that has a task in its inbox, and has not answered it, that
// the task is cancelled: with CNCL, or with CAP's 499. AINL has no word for that.
func (ms *Messenger) recallTask(tx *store.Transaction, row task.Task, by core.By) error {
	inbox, in := ms.Agents.Inbox(row.Agent).File, ms.Agents.Protocol.Dialect(row.Agent)
	if inbox == "" || in == envelope.AINL || row.State == task.Review {
		return nil
	}
	was, err := tx.Delivery(row.Seq)
	if err != nil || was.Appended.IsZero() {
		return err
	}
	conv, _, err := tx.Conversation(row.Seq)
	if err != nil {
		return err
	}
	m := envelope.Message{
		Act: envelope.Cancels, Task: row.ID, Cause: cmp.Or(conv.Message, string(row.ID)), Thread: conv.Thread, Trace: conv.Trace,
		From: envelope.Ourselves, To: []string{row.Agent}, Type: row.Type, Time: time.Now(), Text: (&store.CancelError{By: by}).Error(),
	}
	if by.Who == row.Requester {
		m.From = row.Requester
	}
	record, ok := outgoing(in, m, row.Seq, inbox)
	if !ok {
		return nil
	}
	record.Cause = "" // nobody's wish that has to be answered
	_, err = tx.Record(record)
	return err
}
