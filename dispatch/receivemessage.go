package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// receiveInfo delivers a message and wakes the tasks that wait for it (CLOWL-22,
// CAP-18). A sender that nobody here knows gets an error.
func (rc *receiver) receiveInfo(tx *transaction, c *submission) error {
	m := c.inbound.message
	if c.inbound.answer != nil {
		return rc.receiveAnswer(tx, c) // in CAP it is a message like any other (CAP-33)
	}
	if conversation.AnswersForRun(m, c.row) {
		return rc.denyAnswer(tx, c)
	}
	known, err := rc.participates(tx, c.row, m)
	if err != nil {
		return err
	}
	if !known {
		if err := tx.Log(unknownSender(c)); err != nil {
			return err
		}
		c.row = task.Task{}                                                   // no run gets it
		if err := rc.remember(tx, c); err != nil || m.Act == envelope.Fails { // an error has no reply
			return err
		}
		why := fieldsOf[m.Dialect].from + ": is nobody known here: it has no secret, asked for nothing in this conversation, and has not announced itself"
		return rc.replyError(tx, c, dialect.FailureOf(envelope.Unauthorized, why))
	}
	if most := rc.agents.Protocol.Broadcast; len(conversation.Recipients(m)) > most {
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.ValidationFailed, Field: fieldsOf[m.Dialect].to, Message: fmt.Sprintf("names %d recipients, more than %d", len(m.To), most)})
	}
	if err := rc.distribute(tx, c); err != nil || m.Act == envelope.Inquires {
		return err // an overseer decides in its own run (CAP-24)
	}
	about := []task.Task{c.row}
	if c.row.Seq == 0 {
		if about, err = resolveThread(tx, m); err != nil {
			return err
		}
	}
	for _, row := range about {
		if err := rc.messenger.wakeFor(tx, row, m); err != nil {
			return err
		}
	}
	return nil
}

// participates reports whether the sender of a message is known: it is an agent, has a
// secret or has announced itself, or has asked for the task that the message is about,
// or for one of its thread.
func (rc *receiver) participates(tx *transaction, row task.Task, m envelope.Message) (bool, error) {
	if rc.agents.Known(m.From) || conversation.IsPerson(m.From) || m.Secret != "" && rc.agents.Protocol.Secret(m.From) != "" || row.Requester == m.From {
		return true, nil
	}
	if announced, err := tx.Announced(m.From); announced || err != nil {
		return announced, err
	}
	return tx.AskedIn(m.Thread, m.From)
}

// distribute records a message for each of its recipients: as it came where its form is
// strict and they read its dialect, and else as the daemon writes it, whose lines are
// known.
func (rc *receiver) distribute(tx *transaction, c *submission) error {
	m := c.inbound.message
	to := rc.inboxOwners(m)
	if len(to) == 0 {
		return rc.remember(tx, c)
	}
	again := m
	again.Raw, again.Secret, again.Time = nil, "", c.now
	for _, name := range to {
		record := recordOf(m, task.ByLine, c.row.Seq, c.now)
		record.To = name
		in := rc.messenger.dialectFor(name, task.Task{}, m.Dialect)
		whole := in == m.Dialect && strict(m)
		if whole {
			record.Inbox = rc.messenger.inboxOf(name)
		}
		if _, err := tx.Record(record); err != nil {
			return err
		}
		if whole {
			continue
		}
		if err := rc.messenger.emit(tx, in, again, c.row.Seq, rc.messenger.inboxOf(name)); err != nil {
			return err
		}
	}
	return nil
}

// inboxOwners returns those into whose inboxes a message goes.
func (rc *receiver) inboxOwners(m envelope.Message) []string {
	to := conversation.Recipients(m)
	if slices.Contains(to, envelope.Everybody) {
		to = slices.Clone(rc.agents.Protocol.Agents())
		to = slices.DeleteFunc(to, func(name string) bool { return name == m.From })
	}
	to = slices.DeleteFunc(to, func(name string) bool { return name == envelope.Ourselves })
	return to[:min(len(to), rc.agents.Protocol.Broadcast)]
}

// strict reports whether a message is as the daemon would write it.
func strict(m envelope.Message) bool {
	codec, _ := dialect.Of(m.Dialect)
	line, _ := codec.Encode(m)
	hash, _ := envelope.ContentHash(line)
	return hash == m.Hash
}

// receiveProgress delivers the progress of an agent that fetches its tasks, after the
// notifications of what came before. An ACK, and progress of any other sender, is only
// recorded: it moves no task.
func (rc *receiver) receiveProgress(tx *transaction, c *submission, found bool) error {
	m := c.inbound.message
	if !found || conversation.Acknowledges(m) || c.row.State != task.Waiting || m.From != c.row.Agent {
		return rc.remember(tx, c)
	}
	if err := rc.messenger.notify(tx, c.row.Seq); err != nil {
		return err
	}
	return rc.distribute(tx, c)
}

// receiveQuestion answers a question for the status of a task, and does nothing else
// (CLOWL-28). Any other question is for its recipients.
func (rc *receiver) receiveQuestion(tx *transaction, c *submission, found bool) error {
	m := c.inbound.message
	switch {
	case !conversation.AsksForStatus(m):
		return rc.receiveInfo(tx, c)
	case !found:
		return rc.replyError(tx, c, unknownTask(m))
	}
	if err := rc.remember(tx, c); err != nil {
		return err
	}
	since := c.row.Received
	run, ran, err := tx.LastRun(c.row.Seq)
	switch {
	case err != nil:
		return err
	case c.row.State == task.Done:
		since = c.row.Finished
	case ran && (c.row.State == task.Running || c.row.State == task.Waiting):
		since = run.Intent
	}
	return rc.reply(tx, c, envelope.Message{Act: envelope.Tells, Type: "status", Dialect: m.Dialect, Data: encode(map[string]any{
		"task_id": c.row.ID, "agent": c.row.Agent, "state": c.row.State, "status": c.row.Status, "kind": c.row.Kind,
		"attempt": c.row.Attempt, "reasons": slices.Concat([]task.Reason{}, c.row.Reasons), "since": since.UTC().Format(time.RFC3339),
	})})
}

// receiveAnnouncement records what a sender supports, and answers with what the daemon
// and its agents do (CLOWL-29).
func (rc *receiver) receiveAnnouncement(tx *transaction, c *submission) error {
	m := c.inbound.message
	if err := rc.remember(tx, c); err != nil {
		return err
	}
	if err := tx.Announce(task.Announcement{Name: m.From, Supports: m.Supports, Since: c.now}); err != nil {
		return err
	}
	for _, answer := range conversation.Capabilities(rc.agents.Protocol.Agents(), rc.agents.Protocol.Supports) {
		answer.Dialect = m.Dialect
		if err := rc.reply(tx, c, answer); err != nil {
			return err
		}
	}
	return nil
}

// receiveCancel has a task cancelled for its requester, or for the work that it is part
// of (CLOWL-27). The requester gets its end as the answer, anybody else an answer at
// once. A task that has not come yet is cancelled when it comes.
func (rc *receiver) receiveCancel(tx *transaction, c *submission, found bool) error {
	m := c.inbound.message
	may, err := mayCancel(tx, c.row, m.From)
	switch {
	case err != nil:
		return err
	case found && !may:
		return rc.deny(tx, c, envelope.Finding{Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "did not ask for what it wants to cancel"})
	}
	talk, _, err := tx.Talk(c.row.Seq)
	if err != nil {
		return err
	}
	record := recordOf(m, task.ByLine, c.row.Seq, c.now)
	record.Act, record.Cause = envelope.Cancels, cmp.Or(talk.Message, conversation.CancelledRequest(m)) // by which the notification of the end finds it
	if _, err := tx.Record(record); err != nil {
		return err
	}
	answered := m.From == c.row.Requester && conversation.NotifiedOfEnd(c.row, talk) // by the end
	switch {
	case !found:
		return rc.replyError(tx, c, unknownTask(m))
	case c.row.State == task.Done && answered:
		return nil
	case c.row.State == task.Done:
		why := fmt.Sprintf("%s is over already (%s)", c.row.ID, c.row.Status)
		return rc.replyError(tx, c, dialect.FailureOf(envelope.DuplicateConflict, why))
	}
	tx.cancelAfter(c.row.Seq, m)
	if m.Dialect != envelope.CLowl || answered {
		return nil
	}
	return rc.reply(tx, c, envelope.Message{Act: envelope.Stops, Type: m.Type, Dialect: m.Dialect, Data: encode(map[string]any{"status": envelope.Stopped})})
}
