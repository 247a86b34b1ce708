package ledger

import (
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// Ask writes that an approver is asked from now on: Task to Expires of c.
func (tx *Tx) Ask(c task.Consent) error {
	e, err := tx.whole(c.Task)
	if err == nil && e == nil {
		err = ErrUnknown
	}
	if err != nil {
		return fmt.Errorf("ask for approval of task %d: %w", c.Task, err)
	}
	tx.numbers.approval++
	c.Seq, c.Decision, c.Decided, c.Decider, c.Note = tx.numbers.approval, "", time.Time{}, "", ""
	c.Asked, c.Expires = index.Exact(c.Asked), index.Exact(c.Expires)
	e.parts.approvals = append(e.parts.approvals, c)
	tx.row(e, index.ApprovalRow(c, index.Place{}))
	return nil
}

// Decide writes the decision on the consent with c's Seq: Decision, Decided, Decider, Note
// and Expires of c. It reports whether the decision before was from; when another one came
// first nothing changes.
func (tx *Tx) Decide(from task.Decision, c task.Consent) (bool, error) {
	e, err := tx.whole(c.Task)
	if e == nil || err != nil {
		return false, err
	}
	for i := range e.parts.approvals {
		if was := &e.parts.approvals[i]; was.Seq == c.Seq && was.Decision == from {
			was.Decision, was.Decided, was.Decider, was.Note, was.Expires = c.Decision, index.Exact(c.Decided), c.Decider, c.Note, index.Exact(c.Expires)
			tx.row(e, index.ApprovalRow(*was, index.Place{}))
			return true, nil
		}
	}
	return false, nil
}

// Consent returns the latest approval of a revision at a stage, and whether there is one.
func (tx *Tx) Consent(seq int64, stage envelope.Approval) (task.Consent, bool, error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return task.Consent{}, false, err
	}
	if e.parts == nil {
		return tx.ledger.index.Consent(background, seq, stage)
	}
	c, found := e.consent(stage)
	return c, found, nil
}

func (e *entry) consent(stage envelope.Approval) (task.Consent, bool) {
	for _, c := range slices.Backward(e.parts.approvals) {
		if c.Stage == stage {
			return c, true
		}
	}
	return task.Consent{}, false
}

// keepAnswer puts the result of a task in review with its last approval.
func (tx *Tx) keepAnswer(seq int64) error {
	e, err := tx.whole(seq)
	if err != nil {
		return err
	}
	c, found := e.consent(envelope.ApprovalPost)
	if !found {
		return nil
	}
	answer, err := tx.Result(seq)
	if err != nil || answer == nil {
		return err
	}
	row, body := index.ApprovalRow(c, index.Place{}), index.NewBody("answer", answer)
	e.n = tx.next
	event := journal.Event{Kind: row.Kind(), Task: string(e.ID), Revision: uint64(e.Revision), Data: row.AppendJSON(nil), Bodies: []journal.Body{body}}
	tx.write(event, row, func(*layer, journal.Place) {})
	return nil
}

// Deliver writes that a task is to be in the inbox of its agent. A line that is there already
// stays so; a lease does not.
func (tx *Tx) Deliver(seq int64) error {
	return tx.deliver("deliver", seq, func(d *task.Delivery) { d.Claimed, d.Lease = time.Time{}, "" })
}

// MarkAppended notes that the line of a task is in the inbox file.
func (tx *Tx) MarkAppended(seq int64, at time.Time) error {
	return tx.deliver("mark as appended", seq, func(d *task.Delivery) { d.Appended = index.Exact(at) })
}

// Lease writes the token that answers a task which waits, and that its run has begun with the
// first lease.
func (tx *Tx) Lease(t task.Task, token string, at time.Time) error {
	if err := tx.deliver("lease", t.Seq, func(d *task.Delivery) { d.Claimed, d.Lease = index.Exact(at), token }); err != nil {
		return err
	}
	e, r, err := tx.run(task.RunName{Task: t.Seq, Attempt: t.Attempt})
	if err == nil && r != nil && r.Started.IsZero() {
		r.Started = index.Exact(at)
		tx.row(e, index.RunRow(r))
	}
	return err
}

func (tx *Tx) deliver(verb string, seq int64, change func(*task.Delivery)) error {
	e, err := tx.whole(seq)
	if err != nil {
		return fmt.Errorf("%s task %d: %w", verb, seq, err)
	}
	if e != nil {
		change(&e.parts.delivery)
		tx.row(e, index.DeliveryRow(seq, e.parts.delivery))
	}
	return nil
}

// Delivery returns the delivery of a task to an inbox; zero for a task that was never to be
// delivered.
func (tx *Tx) Delivery(seq int64) (task.Delivery, error) {
	e, err := tx.entry(seq)
	if e == nil || err != nil {
		return task.Delivery{}, err
	}
	if e.parts == nil {
		return tx.ledger.index.Delivery(background, seq)
	}
	return e.parts.delivery, nil
}

// Unclaimed returns the oldest task that waits for an agent and that is not claimed at an
// instant, and whether there is one. One that is too late for its deadline, or that a later
// revision follows, is none.
func (tx *Tx) Unclaimed(agent string, now time.Time) (task.Task, bool, error) {
	list, err := tx.waiting(agent)
	for _, e := range list {
		if e.Latest && !e.Until.After(now) && (e.Deadline.IsZero() || e.Deadline.After(now)) {
			return e.Task.Task, true, err
		}
	}
	return task.Task{}, false, err
}

// Claimed returns the tasks that wait for an agent and that are claimed at an instant, the
// oldest first.
func (tx *Tx) Claimed(agent string, now time.Time) (claimed []task.Task, err error) {
	list, err := tx.waiting(agent)
	for _, e := range list {
		if e.Until.After(now) {
			claimed = append(claimed, e.Task.Task)
		}
	}
	return claimed, err
}

// waiting returns the tasks that wait for an agent, the oldest first.
func (tx *Tx) waiting(agent string) ([]*entry, error) {
	list, err := tx.find(tx.ledger.base.waiting[agent])
	return slices.DeleteFunc(list, func(e *entry) bool { return e.State != task.Waiting || e.Agent != agent }), err
}

// find returns revisions of the base, and all that the group has changed, as they are now.
func (tx *Tx) find(inBase map[int64]bool) ([]*entry, error) {
	seqs := map[int64]bool{}
	for seq := range inBase {
		seqs[seq] = true
	}
	for seq := range tx.merged() {
		seqs[seq] = true
	}
	return tx.entries(seqs)
}

// Pause writes that an agent, or every agent when it is "", may start nothing. It reports
// whether that is news.
func (tx *Tx) Pause(agent string) (bool, error) {
	if tx.paused(agent) {
		return false, nil
	}
	put(&tx.own.pauses, agent, true)
	tx.row(nil, index.PauseRow(agent, time.Now()))
	return true, nil
}

// Resume forgets the pause of exactly this name. It reports whether there was one.
func (tx *Tx) Resume(agent string) (bool, error) {
	if !tx.paused(agent) {
		return false, nil
	}
	put(&tx.own.pauses, agent, false)
	tx.row(nil, index.PauseGone(agent))
	return true, nil
}

func (tx *Tx) paused(agent string) bool {
	for _, l := range [...]*layer{tx.own, tx.group, &tx.ledger.base.layer} {
		if paused, known := l.pauses[agent]; known {
			return paused
		}
	}
	return false
}

// SetFile writes f in the place of what was known of its path.
func (tx *Tx) SetFile(f File) { tx.row(nil, index.FileRow(f)) }

// AddDeadLetter keeps a line for a file of dead letters until DropDeadLetters. The line must
// not be changed afterwards.
func (tx *Tx) AddDeadLetter(line []byte) {
	tx.numbers.deadLetter++
	tx.row(nil, index.DeadLetterRow(DeadLetter{Seq: tx.numbers.deadLetter, Line: line}))
}

// DropDeadLetters forgets the lines up to a Seq: they are in a file.
func (tx *Tx) DropDeadLetters(upTo int64) error {
	seqs, err := tx.ledger.index.DeadLetterSeqs(background, upTo)
	for _, seq := range seqs {
		tx.row(nil, index.DeadLetterGone(seq))
	}
	return err
}
