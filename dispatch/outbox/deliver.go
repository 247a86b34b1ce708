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
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// InboxOf returns the file below the mailbox to which messages for a participant are appended:
// the inbox of an agent that fetches its tasks, or agents/<name>/inbox.jsonl. A name that is
// not a valid file name is replaced by a digest.
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

// deliverBatchSize is how many messages are delivered at once.
const deliverBatchSize = 64

// A deliveryRound delivers the due messages. It skips inboxes that can't be written for a
// reason of their own: their messages stay due, in order, until the next round. The zero value
// begins with the oldest message.
type deliveryRound struct {
	skipped map[string]bool // the inboxes that can't be written; nil: none
	after   int64           // the Seq of the last message that was handled
}

// deliverDue appends the due messages to their inboxes, in order, and records the delivery.
// After a crash between these steps an inbox has a line twice, with the same id. It continues a
// round, and returns the round after it. An error concerns all inboxes, and ends the round.
func (ms *Messenger) deliverDue(ctx context.Context, r deliveryRound) (deliveryRound, error) {
	for {
		due, err := ms.Ledger.Due(ctx, r.after, deliverBatchSize)
		switch {
		case err != nil:
			return deliveryRound{}, err
		case len(due) == 0 && r.skipped == nil:
			return deliveryRound{}, nil
		case len(due) == 0:
			return r, nil
		}
		if err := ms.deliverBatch(ctx, due, &r); err != nil {
			return deliveryRound{}, err
		}
		r.after = due[len(due)-1].Seq
	}
}

// deliverBatch delivers some messages. It skips an inbox that can't be written, for the rest of
// the round.
func (ms *Messenger) deliverBatch(ctx context.Context, due []task.Message, r *deliveryRound) error {
	var delivered []int64
	var failed error
	for _, b := range bundles(due) {
		if r.skipped[b.inbox] {
			continue
		}
		faultName := "messages cannot be put into " + b.inbox
		err := ms.Box.AppendInbox(b.inbox, bytes.Join(b.lines, []byte("\n")))
		if err == nil {
			ms.FaultLog.Clear(faultName)
			delivered = append(delivered, b.seqs...)
			continue
		}
		if _, isShared := store.MachineHint(err); isShared {
			failed = err
			break
		}
		ms.FaultLog.Report(faultName, task.Task{}, err)
		r.skip(b.inbox)
	}
	if len(delivered) == 0 {
		return failed
	}
	fault.Point("posted")
	err := ms.writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error { // WithoutCancel: the lines are in the inbox already
		for _, seq := range delivered {
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

func (r *deliveryRound) skip(inbox string) {
	if r.skipped == nil {
		r.skipped = map[string]bool{}
	}
	r.skipped[inbox] = true
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
		b.lines, b.seqs = append(b.lines, deliveryLine(m)), append(b.seqs, m.Seq)
	}
	return all
}

// deliveryLine returns the line of a message for its recipient: in the strict form of its
// dialect, with a time. The ledger keeps the sender's form.
func deliveryLine(m task.Message) []byte {
	codec, ok := dialect.Of(m.Dialect)
	if !ok || m.Dialect == envelope.AINL || m.Via == task.ByDaemon {
		return m.Body
	}
	decoded, findings := codec.Decode(m.Body, envelope.Strict)
	if findings.Refused() {
		return m.Body // it was accepted in this form
	}
	if decoded.Time.IsZero() {
		decoded.Time = m.Time
	}
	decoded.Extra = nil
	line, _ := codec.Encode(decoded)
	return line
}

// InboxLine returns the line of a task for the inbox of its agent. The line is the same each
// time: the exact bytes of an AINL request, otherwise the strict form of the agent's dialect,
// with a time.
func (ms *Messenger) InboxLine(row task.Task, raw []byte) ([]byte, error) {
	target := ms.Agents.Protocol.Dialect(row.Agent)
	translated := target != cmp.Or(row.Dialect, envelope.AINL)
	if translated {
		t, _ := dialect.DecodeTask(row.Dialect, raw, ms.Opts.Reading)
		raw = dialect.Translate(t, target)
	}
	codec, ok := dialect.Of(target)
	if !ok || target == envelope.AINL {
		return oneLine(raw)
	}
	m, findings := codec.Decode(raw, ms.Opts.Reading)
	if findings.Refused() {
		return oneLine(raw) // it was accepted in this form
	}
	if translated || m.Time.IsZero() {
		m.Time = row.Received
	}
	if m.Clutch.Routed() { // it is for the agent that was chosen
		m.To, m.Clutch.Recipients = []string{row.Agent}, nil
	}
	m.Extra = nil
	line, _ := codec.Encode(m)
	return line, nil
}

// oneLine returns the exact bytes of a task. It removes line ends, which only a task from
// another source than a line may have.
func oneLine(raw []byte) ([]byte, error) {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw, nil
	}
	return jsontext.AppendFormat(nil, raw, jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
}

// recallTask notifies an agent that has an unanswered task in its inbox that the task is
// cancelled: with CNCL, or with CAP's 499. AINL has no such message.
func (ms *Messenger) recallTask(tx *store.Transaction, row task.Task, by core.By) error {
	inbox, in := ms.Agents.Inbox(row.Agent).File, ms.Agents.Protocol.Dialect(row.Agent)
	if inbox == "" || in == envelope.AINL || row.State == task.Review {
		return nil
	}
	delivery, err := tx.Delivery(row.Seq)
	if err != nil || delivery.Appended.IsZero() {
		return err
	}
	conv, _, err := tx.Conversation(row.Seq)
	if err != nil {
		return err
	}
	m := envelope.Message{
		Act: envelope.Cancels, Task: row.ID, Cause: cmp.Or(conv.Message, string(row.ID)), Thread: conv.Thread, Trace: conv.Trace,
		From: envelope.Mailboxd, To: []string{row.Agent}, Type: row.Type, Time: time.Now(), Text: (&store.CancelError{By: by}).Error(),
	}
	if by.Who == row.Requester {
		m.From = row.Requester
	}
	record, ok := outgoing(in, m, row.Seq, inbox)
	if !ok {
		return nil
	}
	record.Cause = "" // the message answers no request
	_, err = tx.Record(record)
	return err
}
