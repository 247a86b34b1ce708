package dispatch

import (
	"context"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// nudge has the requester of a task told what is new, and what is due posted,
// soon. Until that is done it is never idle. 0 is no task: then only what is due
// is posted. It never blocks.
func (d *Dispatcher) nudge(seq int64) {
	d.queue.AddBusy()
	if !d.untold.add(seq) {
		d.queue.Done()
	}
}

// nudgeOf is nudge for a task that was just moved.
func (d *Dispatcher) nudgeOf(row task.Task) {
	if conversation.MayNotify(row) {
		d.nudge(row.Seq)
	}
}

// recallTalks goes on with what an earlier daemon had still to say.
func (d *Dispatcher) recallTalks(ctx context.Context) error {
	open, err := d.Ledger.OpenTalks(ctx)
	for _, seq := range open {
		d.nudge(seq)
	}
	d.nudge(0)
	return err
}

// atOnce is of how many tasks is told in one transaction.
const atOnce = 100

// tellAll tells and posts until ctx ends. What cannot be done for want of
// something that everything needs is tried again after a pause, and nothing is
// idle before; an inbox that alone cannot be written waits for others' sake.
func (d *Dispatcher) tellAll(ctx, work context.Context) {
	var pause <-chan time.Time
	var stuck round
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.untold.added:
		case <-pause:
			pause, stuck = nil, round{}
		}
		seqs := d.untold.some(atOnce)
		err := d.tellThese(work, seqs)
		if err == nil {
			stuck, err = d.postDue(work, stuck)
		}
		if err != nil && ctx.Err() == nil {
			d.faults.report(telling, task.Task{}, err)
			select {
			case <-ctx.Done():
			case <-time.After(retryPause): // a nudge does not make it shorter
			}
			d.tellLater(seqs)
			continue
		}
		d.faults.clear(telling)
		if stuck.closed != nil && pause == nil {
			pause = time.After(settlePause)
		}
		d.untold.told(len(seqs))
		for range seqs {
			d.queue.Done()
		}
	}
}

// tellLater keeps tasks that could not be told of, which are still busy. Where
// there are none it was the posting that did not work.
func (d *Dispatcher) tellLater(seqs []int64) {
	if len(seqs) == 0 {
		d.nudge(0)
	}
	for _, seq := range seqs {
		if !d.untold.add(seq) {
			d.queue.Done() // somebody has nudged meanwhile
		}
	}
	d.untold.told(len(seqs))
}

// tellThese tells what is new of some tasks.
func (d *Dispatcher) tellThese(ctx context.Context, seqs []int64) error {
	var open []int64
	for _, seq := range seqs {
		k, ok, err := d.Ledger.Talk(ctx, seq)
		if err != nil {
			return err
		}
		if ok && k.Open {
			open = append(open, seq)
		}
	}
	if len(open) == 0 {
		return nil
	}
	_, err := d.commit(ctx, func(tx *transaction) error { // and posting is next
		for _, seq := range open {
			if err := d.tell(tx, seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		fault.Point("told")
	}
	return err
}

// tell says to the requester of a task what has happened to it since they were
// told last, and remembers that: what it says is said once, whoever calls it how
// often. After the end of the task there is no more to tell. The caller nudges
// afterwards, so that what was said is posted.
func (d *Dispatcher) tell(tx *transaction, seq int64) error {
	k, ok, err := tx.Talk(seq)
	if err != nil || !ok || !k.Open {
		return err
	}
	row, found, err := tx.Task(seq)
	if err != nil || !found {
		return err
	}
	events, err := tx.News(seq, k.Notified)
	if err != nil {
		return err
	}
	about, err := d.tellable(tx, row, k)
	if err != nil {
		return err
	}
	last := k.Notified
	if len(events) > 0 {
		last = events[len(events)-1].Seq
	}
	inbox := ""
	if !about.Silent() {
		inbox = d.inboxOf(row.Requester)
	}
	for _, m := range conversation.Notifications(about, events) {
		m.Time = time.Now()
		if err := d.emit(tx, row.Dialect, m, seq, inbox); err != nil {
			return err
		}
	}
	return tx.Told(seq, last, row.State != task.Done)
}

// tellable is what a task's requester has to be told about.
func (d *Dispatcher) tellable(tx *transaction, row task.Task, k task.Conversation) (conversation.Request, error) {
	t := conversation.Request{
		ID: row.ID, Type: row.Type, Requester: row.Requester, Agent: row.Agent, Dialect: row.Dialect,
		Message: k.Message, Thread: k.Thread, Trace: k.Trace, Tie: k.Tie,
	}
	if row.State != task.Done {
		return t, nil
	}
	raw, err := tx.Result(row.Seq)
	if err != nil {
		return t, err
	}
	result, _ := envelope.DecodeResult(raw) // ours
	if raw == nil {
		result = envelope.Result{TaskID: row.ID, Status: row.Status, Error: envelope.Error{Kind: row.Kind}} // a newer request took its place
	}
	t.Result = &result
	cancels, err := tx.Replies(k.Message, envelope.Cancels, row.Requester, row.Received.Add(-premature))
	for _, m := range cancels {
		if m.Task == row.Seq { // one that came before the request was answered then, with an error
			t.Cancels = append(t.Cancels, m.ID)
		}
	}
	return t, err
}
