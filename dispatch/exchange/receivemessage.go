package exchange

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// receiveInfo delivers a message and wakes the tasks that wait for it (CLOWL-22, CAP-18). An
// unknown sender gets an error.
func (rc *Receiver) receiveInfo(tx *store.Transaction, c *Submission) error {
	m := c.Inbound.Message
	if c.Inbound.answer != nil {
		return rc.receiveAnswer(tx, c) // CAP has no separate act for an answer (CAP-33)
	}
	if conversation.AnswersForRun(m, c.Row) {
		return rc.denyAnswer(tx, c)
	}
	known, err := rc.participates(tx, c.Row, m)
	if err != nil {
		return err
	}
	if !known {
		if err := tx.Log(unknownSender(c)); err != nil {
			return err
		}
		c.Row = task.Task{}                                                 // no run gets the message
		if err := rc.record(tx, c); err != nil || m.Act == envelope.Fails { // an error gets no reply
			return err
		}
		why := fieldsOf[m.Dialect].from + ": is an unknown sender: it has no secret, asked for nothing in this conversation, and has not announced itself"
		return rc.replyError(tx, c, dialect.FailureOf(envelope.Unauthorized, why))
	}
	if limit := rc.Agents.Protocol.Broadcast; len(conversation.Recipients(m)) > limit {
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.ValidationFailed, Field: fieldsOf[m.Dialect].to, Message: fmt.Sprintf("names %d recipients, more than %d", len(m.To), limit)})
	}
	if err := rc.distribute(tx, c); err != nil || m.Act == envelope.Inquires {
		return err // an overseer decides in its own run (CAP-24)
	}
	about := []task.Task{c.Row}
	if c.Row.Seq == 0 {
		if about, err = store.ResolveThread(tx, m); err != nil {
			return err
		}
	}
	for _, row := range about {
		if err := rc.Messenger.WakeFor(tx, row, m); err != nil {
			return err
		}
	}
	return nil
}

// participates reports whether the sender of a message is known: the sender is an agent, has a
// secret or a verified signature, has announced itself, or has requested the task of the message or a task of its thread.
// With conversation.unknown_senders: accept, every sender is.
func (rc *Receiver) participates(tx *store.Transaction, row task.Task, m envelope.Message) (bool, error) {
	authenticated := m.Secret != "" && rc.Agents.Protocol.Secret(m.From) != "" || verified(m)
	if rc.Agents.Known(m.From) || conversation.IsPerson(m.From) || authenticated || row.Requester == m.From {
		return true, nil
	}
	if rc.Agents.Protocol.AcceptsUnknown() {
		return true, nil
	}
	if announced, err := tx.Announced(m.From); announced || err != nil {
		return announced, err
	}
	return tx.IsRequesterIn(m.Thread, m.From)
}

// distribute records a message for each of its recipients. The line stays unchanged where its
// form is strict and the recipient reads its dialect. Otherwise the daemon writes a line of its
// own, which it recognizes later.
func (rc *Receiver) distribute(tx *store.Transaction, c *Submission) error {
	m := c.Inbound.Message
	to := rc.inboxOwners(m)
	if len(to) == 0 {
		return rc.record(tx, c)
	}
	rewritten := m
	rewritten.Raw, rewritten.Secret, rewritten.Time = nil, "", c.Now
	for _, name := range to {
		record := outbox.RecordOf(m, task.ByLine, c.Row.Seq, c.Now)
		record.To = name
		in := rc.Messenger.DialectFor(name, task.Task{}, m.Dialect)
		unchanged := in == m.Dialect && dialect.IsStrict(m)
		if unchanged {
			record.Inbox = rc.Messenger.InboxOf(name)
		}
		if _, err := tx.Record(record); err != nil {
			return err
		}
		if unchanged {
			continue
		}
		if err := rc.Messenger.Emit(tx, in, rewritten, c.Row.Seq, rc.Messenger.InboxOf(name)); err != nil {
			return err
		}
	}
	return nil
}

// inboxOwners returns the participants that get a message in their inboxes.
func (rc *Receiver) inboxOwners(m envelope.Message) []string {
	to := conversation.Recipients(m)
	if slices.Contains(to, envelope.Everybody) {
		to = slices.Clone(rc.Agents.Protocol.Agents())
		to = slices.DeleteFunc(to, func(name string) bool { return name == m.From })
	}
	to = slices.DeleteFunc(to, func(name string) bool { return name == envelope.Mailboxd })
	return to[:min(len(to), rc.Agents.Protocol.Broadcast)]
}

// receiveProgress delivers the progress of an agent that fetches its tasks, after the
// notifications of earlier events. An ACK, and the progress of any other sender, is only
// recorded: it moves no task.
func (rc *Receiver) receiveProgress(tx *store.Transaction, c *Submission, found bool) error {
	m := c.Inbound.Message
	if !found || conversation.Acknowledges(m) || c.Row.State != task.Waiting || m.From != c.Row.Agent {
		return rc.record(tx, c)
	}
	if err := rc.Messenger.Notify(tx, c.Row.Seq); err != nil {
		return err
	}
	return rc.distribute(tx, c)
}

// receiveQuestion answers a question for the status of a task, and does nothing else
// (CLOWL-28). Any other question goes to its recipients. A question to an agent at work is also
// answered with the status of its task, since the agent replies only after its run.
func (rc *Receiver) receiveQuestion(tx *store.Transaction, c *Submission, found bool) error {
	m := c.Inbound.Message
	switch {
	case !conversation.AsksForStatus(m):
		if err := rc.receiveInfo(tx, c); err != nil || !conversation.Interrupts(m, c.Row) {
			return err
		}
		return rc.replyStatus(tx, c)
	case !found:
		return rc.replyError(tx, c, unknownTask(m))
	}
	if err := rc.record(tx, c); err != nil {
		return err
	}
	return rc.replyStatus(tx, c)
}

// replyStatus replies with the status of the task that a message names.
func (rc *Receiver) replyStatus(tx *store.Transaction, c *Submission) error {
	since := c.Row.Received
	run, ran, err := tx.LastRun(c.Row.Seq)
	switch {
	case err != nil:
		return err
	case c.Row.State == task.Done:
		since = c.Row.Finished
	case ran && (c.Row.State == task.Running || c.Row.State == task.Waiting):
		since = run.Intent
	}
	return rc.reply(tx, c, envelope.Message{Act: envelope.ReportsStatus, Type: "status", Dialect: c.Inbound.Message.Dialect, Data: store.Encode(map[string]any{
		"task_id": c.Row.ID, "agent": c.Row.Agent, "state": c.Row.State, "status": c.Row.Status, "kind": c.Row.Kind,
		"attempt": c.Row.Attempt, "reasons": slices.Concat([]task.Reason{}, c.Row.Reasons), "since": since.UTC().Format(time.RFC3339),
	})})
}

// receiveAnnouncement records what a sender supports, and answers with what the daemon and its
// agents support (CLOWL-29).
func (rc *Receiver) receiveAnnouncement(tx *store.Transaction, c *Submission) error {
	m := c.Inbound.Message
	if err := rc.record(tx, c); err != nil {
		return err
	}
	if m.Clutch != nil && rc.Agents.Known(m.From) {
		return nil // its card narrows the choice of agents, in memory alone
	}
	if err := tx.Announce(task.Announcement{Name: m.From, Supports: m.Supports, Since: c.Now}); err != nil || m.Clutch != nil {
		return err // the registry is asked for, not sent
	}
	for _, answer := range conversation.Capabilities(rc.Agents.Protocol.Agents(), rc.Agents.Protocol.Supports) {
		answer.Dialect = m.Dialect
		if err := rc.reply(tx, c, answer); err != nil {
			return err
		}
	}
	return nil
}

// receiveCancel cancels a task for its requester, or for a participant of the ancestor tasks
// (CLOWL-27). The requester gets the end of the task as the answer, other senders an answer at
// once. A request that arrives later is cancelled on arrival.
func (rc *Receiver) receiveCancel(tx *store.Transaction, c *Submission, found bool) error {
	m := c.Inbound.Message
	may, err := outbox.MayCancel(tx, c.Row, m.From)
	switch {
	case err != nil:
		return err
	case found && !may:
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "did not ask for what it wants to cancel"})
	}
	if other, err := rc.denyOthers(tx, c, c.Row, found); other || err != nil {
		return err
	}
	conv, _, err := tx.Conversation(c.Row.Seq)
	if err != nil {
		return err
	}
	record := outbox.RecordOf(m, task.ByLine, c.Row.Seq, c.Now)
	record.Act, record.Cause = envelope.Cancels, cmp.Or(conv.Message, conversation.CancelledRequest(m)) // the notification of the end finds the message by the cause
	if _, err := tx.Record(record); err != nil {
		return err
	}
	answered := m.From == c.Row.Requester && conversation.NotifiedOfEnd(c.Row, conv) // by the end of the task
	switch {
	case !found:
		return rc.replyError(tx, c, unknownTask(m))
	case c.Row.State == task.Done && answered:
		return nil
	case c.Row.State == task.Done:
		why := fmt.Sprintf("%s is over already (%s)", c.Row.ID, c.Row.Status)
		return rc.replyError(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
	}
	tx.CancelAfter(c.Row.Seq, m)
	if m.Dialect != envelope.CLowl || answered {
		return nil
	}
	return rc.reply(tx, c, envelope.Message{Act: envelope.Stops, Type: m.Type, Dialect: m.Dialect, Data: store.Encode(map[string]any{"status": envelope.Stopped})})
}
