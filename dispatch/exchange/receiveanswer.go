package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// answerOf returns the outcome of a message by which an agent answers or delegates a task in
// its inbox, as Submit does, or calls a tool that it may not use; nil for another message. It runs before the transaction of the
// message, which checks whether the task still waits. An error says that the ledger can't be
// read.
func (rc *Receiver) answerOf(m envelope.Message) (*inboundAnswer, error) {
	ctx := context.Background()
	speaks := rc.Agents.Protocol.Dialect(m.From)
	if rc.Agents.Inbox(m.From).File == "" || speaks != m.Dialect {
		return nil, nil
	}
	row, found, err := rc.Reader.Finder(ctx).Resolve(m, task.Task{})
	if err != nil || !found || row.State != task.Waiting || row.Agent != m.From {
		return nil, err
	}
	a := &inboundAnswer{row: row}
	if a.run, err = rc.Reader.RunOf(ctx, row); err != nil {
		return nil, err
	}
	job, err := rc.Reader.JobOf(ctx, row, a.run)
	if err = cmp.Or(err, fault.Read("answered task")); err != nil {
		return nil, err
	}
	codec, _ := dialect.Of(m.Dialect)
	read, findings := codec.Receive(m.Raw, job.Task)
	if findings.Refused() {
		read = envelope.Message{}
	}
	ends := conversation.EndsRun(m, read)
	if !ends && m.Act != envelope.Calls {
		return nil, nil // another message about its task
	}
	outcome, err := rc.Meters.JudgeAnswer(ctx, row, a.run, job, m.Raw)
	if !ends && (err != nil || outcome.Result.Error.Kind != envelope.PolicyViolation) {
		return nil, nil // an allowed tool
	}
	if err != nil {
		a.err = err
		return a, nil
	}
	if a.completion, err = rc.Completer.Prepare(ctx, row, a.run.Terms, outcome); err != nil {
		return nil, err
	}
	data := store.WithField(outcome.EndData(), "by", m.From)
	delete(data, "exit_code") // there was no process
	a.completion.Event = store.Event(row, task.KindTaskFinished, data)
	return a, nil
}

// Unjudged says why messages among submissions can't be judged now. Their lines are read again.
func Unjudged(submissions []*Submission) error {
	for _, c := range submissions {
		if c.Inbound != nil && c.Inbound.unread != nil {
			return fmt.Errorf("find the task that %s at %d answers: %w", c.Line.File, c.Line.Offset, c.Inbound.unread)
		}
	}
	return nil
}

// receiveEnd handles a message that reports the end or the failure of a task. It ends a task
// only if the task waits for the sender: a task that the daemon runs ends with its run
// (CLOWL-40).
func (rc *Receiver) receiveEnd(tx *store.Transaction, c *Submission, found bool) error {
	m := c.Inbound.Message
	switch {
	case found && conversation.Cancels(m, c.Row):
		return rc.receiveCancel(tx, c, true) // the form of a cancellation in CAP (mapping 2.2)
	case !found && m.Act == envelope.Fails:
		return rc.receiveInfo(tx, c)
	case !found:
		return rc.replyError(tx, c, unknownTask(m))
	case c.Inbound.answer != nil:
		return rc.receiveAnswer(tx, c)
	case c.Row.State == task.Done:
		return rc.record(tx, c) // the task is done already
	}
	return rc.denyAnswer(tx, c)
}

// denyAnswer refuses the answer to a task whose agent the daemon runs.
func (rc *Receiver) denyAnswer(tx *store.Transaction, c *Submission) error {
	return rc.deny(tx, c, envelope.Finding{
		Kind: envelope.Unauthorized, Field: fieldsOf[c.Inbound.Message.Dialect].from, Message: "does not have " + string(c.Row.ID) + " in its inbox",
	})
}

// receiveAnswer ends a task with the answer of its agent in a line. It decides no review: any
// program can append a line (CAP-24).
func (rc *Receiver) receiveAnswer(tx *store.Transaction, c *Submission) error {
	m, a := c.Inbound.Message, c.Inbound.answer
	field := fieldsOf[m.Dialect].from
	c.Row = a.row
	fresh, err := store.Entitled(tx, a.row, "", c.Now)
	var over *core.StateError
	switch {
	case errors.As(err, &over) || err == nil && core.IsPast(a.run.Terms.Deadline, c.Now):
		return rc.record(tx, c)
	case errors.Is(err, core.ErrLeased):
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.DuplicateConflict, Field: field, Message: err.Error()})
	case err != nil:
		return err
	}
	conv, _, err := tx.Conversation(fresh.Seq)
	switch {
	case err != nil:
		return err
	case conv.Tie == envelope.Oversee:
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: field, Message: "decides by its own run, or by submitting it, not in a line"})
	case a.err != nil:
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.ValidationFailed, Message: a.err.Error()})
	}
	if !conversation.AsksForWork(m) && !a.completion.suspends() { // otherwise the completion records it
		if err := rc.record(tx, c); err != nil {
			return err
		}
	}
	a.completion.Row = fresh
	return rc.Completer.Apply(tx, a.completion)
}

// record records a message of a line.
func (rc *Receiver) record(tx *store.Transaction, c *Submission) error {
	_, err := tx.Record(outbox.RecordOf(c.Inbound.Message, task.ByLine, c.Row.Seq, c.Now))
	return err
}
