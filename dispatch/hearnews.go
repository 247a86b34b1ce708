package dispatch

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// hearNews hands a message to whom it is for, and has those go on who wait for it
// (CLOWL-22, CAP-18). Somebody whom nobody here knows is told that it goes to nobody.
func (d *Dispatcher) hearNews(tx *transaction, c *claim) error {
	m := c.heard.message
	if c.heard.answer != nil {
		return d.hearAnswer(tx, c) // CAP's answer is a message like any other (CAP-33)
	}
	if conversation.AnswersForRun(m, c.row) {
		return d.deny(tx, c, envelope.Finding{
			Kind: envelope.Unauthorized, Field: fieldsOf[m.Dialect].from, Message: "does not have " + string(c.row.ID) + " in its inbox",
		})
	}
	known, err := d.participates(tx, c.row, m)
	if err != nil {
		return err
	}
	if !known {
		if err := tx.Log(unknownSender(c)); err != nil {
			return err
		}
		c.row = task.Task{}                                                  // no run gets to see it
		if err := d.remember(tx, c); err != nil || m.Act == envelope.Fails { // which is no question, and has no answer
			return err
		}
		why := fieldsOf[m.Dialect].from + ": is nobody known here: it has no secret, asked for nothing in this conversation, and has not announced itself"
		return d.complainTo(tx, c, dialect.FailureOf(envelope.Unauthorized, why))
	}
	if most := d.agents.Protocol.Broadcast; len(conversation.Recipients(m)) > most {
		return d.deny(tx, c, envelope.Finding{Kind: envelope.ValidationFailed, Field: fieldsOf[m.Dialect].to, Message: fmt.Sprintf("names %d recipients, more than %d", len(m.To), most)})
	}
	if err := d.handOut(tx, c); err != nil || m.Act == envelope.Inquires {
		return err // who oversees says so in its own run (CAP-24)
	}
	about := []task.Task{c.row}
	if c.row.Seq == 0 {
		if about, err = resolveThread(tx, m); err != nil {
			return err
		}
	}
	for _, row := range about {
		if err := d.wake(tx, row, m); err != nil {
			return err
		}
	}
	return nil
}

// participates reports whether anybody here knows the sender of a message: it is
// an agent, has a secret or has announced itself, or has asked for the task that
// the message is about, or for one of its conversation.
func (d *Dispatcher) participates(tx *transaction, row task.Task, m envelope.Message) (bool, error) {
	if d.agents.Known(m.From) || conversation.IsPerson(m.From) || m.Secret != "" && d.agents.Protocol.Secret(m.From) != "" || row.Requester == m.From {
		return true, nil
	}
	if announced, err := tx.Announced(m.From); announced || err != nil {
		return announced, err
	}
	return tx.AskedIn(m.Thread, m.From)
}

// handOut records a message, and puts it into the inbox of each recipient: as it
// came where that is strict enough and they read its dialect, and else as we say
// it, which we then know for ours.
func (d *Dispatcher) handOut(tx *transaction, c *claim) error {
	m := c.heard.message
	to := d.readers(m)
	if len(to) == 0 {
		return d.remember(tx, c)
	}
	again := m
	again.Raw, again.Secret, again.Time = nil, "", c.now
	for _, name := range to {
		record := recordOf(m, task.ByLine, c.row.Seq, c.now)
		record.To = name
		in := d.dialectFor(name, task.Task{}, m.Dialect)
		whole := in == m.Dialect && strict(m)
		if whole {
			record.Inbox = d.inboxOf(name)
		}
		if _, err := tx.Record(record); err != nil {
			return err
		}
		if whole {
			continue
		}
		if err := d.emit(tx, in, again, c.row.Seq, d.inboxOf(name)); err != nil {
			return err
		}
	}
	return nil
}

// readers are those into whose inboxes a message goes.
func (d *Dispatcher) readers(m envelope.Message) []string {
	to := conversation.Recipients(m)
	if slices.Contains(to, envelope.Everybody) {
		to = slices.Clone(d.agents.Protocol.Agents())
		to = slices.DeleteFunc(to, func(name string) bool { return name == m.From })
	}
	to = slices.DeleteFunc(to, func(name string) bool { return name == envelope.Ourselves })
	return to[:min(len(to), d.agents.Protocol.Broadcast)]
}

// strict reports whether a message says what it says as we would say it.
func strict(m envelope.Message) bool {
	codec, _ := dialect.Of(m.Dialect)
	line, _ := codec.Encode(m)
	hash, _ := envelope.ContentHash(line)
	return hash == m.Hash
}

// hearProgress hands on what an agent says while it works on a task that lies in
// its inbox, after what its requester was to be told before. An ACK, and anything
// else, is only remembered: it moves no task.
func (d *Dispatcher) hearProgress(tx *transaction, c *claim, found bool) error {
	m := c.heard.message
	if !found || conversation.Acknowledges(m) || c.row.State != task.Waiting || m.From != c.row.Agent {
		return d.remember(tx, c)
	}
	if err := d.tell(tx, c.row.Seq); err != nil {
		return err
	}
	return d.handOut(tx, c)
}

// hearQuestion tells whoever asks how far a task is, and does nothing else
// (CLOWL-28). Any other question is for somebody else.
func (d *Dispatcher) hearQuestion(tx *transaction, c *claim, found bool) error {
	m := c.heard.message
	switch {
	case !conversation.AsksForStatus(m):
		return d.hearNews(tx, c)
	case !found:
		return d.complainTo(tx, c, unknownTask(m))
	}
	if err := d.remember(tx, c); err != nil {
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
	return d.reply(tx, c, envelope.Message{Act: envelope.Tells, Type: "status", Dialect: m.Dialect, Data: encode(map[string]any{
		"task_id": c.row.ID, "agent": c.row.Agent, "state": c.row.State, "status": c.row.Status, "kind": c.row.Kind,
		"attempt": c.row.Attempt, "reasons": slices.Concat([]task.Reason{}, c.row.Reasons), "since": since.UTC().Format(time.RFC3339),
	})})
}

// unknownTask is why nothing can be done about a task.
func unknownTask(m envelope.Message) envelope.Failure {
	why := dialect.FailureOf(envelope.ValidationFailed, fieldsOf[m.Dialect].about+": names no task here")
	why.Retry = false
	return why
}

// hearAnnouncement remembers what somebody can do, and tells them who is here
// (CLOWL-29).
func (d *Dispatcher) hearAnnouncement(tx *transaction, c *claim) error {
	m := c.heard.message
	if err := d.remember(tx, c); err != nil {
		return err
	}
	if err := tx.Announce(task.Announcement{Name: m.From, Supports: m.Supports, Since: c.now}); err != nil {
		return err
	}
	for _, answer := range conversation.Capabilities(d.agents.Protocol.Agents(), d.agents.Protocol.Supports) {
		answer.Dialect = m.Dialect
		if err := d.reply(tx, c, answer); err != nil {
			return err
		}
	}
	return nil
}
