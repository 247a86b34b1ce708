package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// endedBelow does what the end of a task means for those above and below it. It
// may come at any time, and comes at least once after a start for whom it
// concerns.
func (d *Dispatcher) endedBelow(ctx context.Context, row task.Task) {
	d.heard.forget(row.Seq)
	if d.kin.remove(row.Seq) {
		if err := d.disown(ctx, row); err != nil {
			d.faults.report(judging, row, err)
			d.kin.add(row.Seq)
			d.timers.After(row.Seq, retryPause)
		}
	}
	if row.Parent != 0 {
		d.joinNow(ctx, row.Parent)
	}
}

// joinNow lets a task go on that waits for the end of others, if they have ended.
func (d *Dispatcher) joinNow(ctx context.Context, seq int64) {
	row, err := d.Ledger.Task(ctx, seq)
	switch {
	case err != nil:
	case conversation.Suspended(row):
		_, err = d.join(ctx, row)
	case row.State == task.Review:
		err = d.reconsiderReview(ctx, row)
	}
	if err != nil && ctx.Err() == nil {
		d.faults.report(judging, row, err)
		d.timers.After(seq, retryPause)
	}
}

// join has a task that waits for words go on if what it needs has ended: what
// it handed over entirely is its outcome, what several were asked for is put
// together, and else its agent is run again. It reports whether it did.
func (d *Dispatcher) join(ctx context.Context, row task.Task) (bool, error) {
	children, err := d.Ledger.Offspring(ctx, row.Seq)
	if err != nil {
		return false, err
	}
	if last, ok := conversation.Tied(children, envelope.Transfer); ok {
		if last.State != task.Done {
			return false, nil
		}
		return true, d.inherit(ctx, row, last)
	}
	if slices.ContainsFunc(children, conversation.Pending) {
		return false, nil
	}
	if row.Agent == envelope.Ourselves {
		return true, d.gather(ctx, row, children)
	}
	if conversation.AwaitsReply(row) {
		run, err := d.runOf(ctx, row)
		since := func(c task.Child) bool { return conversation.Needed(c) && c.Finished.After(run.Finished) }
		if err != nil || !slices.ContainsFunc(children, since) {
			return false, err
		}
	}
	return d.goOn(ctx, row)
}

// goOn has a task run again whose children have ended.
func (d *Dispatcher) goOn(ctx context.Context, row task.Task) (bool, error) {
	moved := false
	err := d.update(ctx, func(tx *transaction) error {
		moved = false
		same, err := unmoved(tx, row)
		if err == nil && same {
			_, moved, err = d.rouse(tx, row, nil)
		}
		return err
	})
	return moved, err
}

// inherit ends a task with the outcome of the one that its agent handed it over
// to (CLOWL-31). It is reviewed as an answer of that agent's own would be.
func (d *Dispatcher) inherit(ctx context.Context, row task.Task, from task.Child) error {
	r, err := d.answerOfChild(ctx, from.Task)
	if err != nil {
		return err
	}
	r.TaskID = row.ID
	if r.Status == envelope.Rejected {
		r.Status = envelope.Failed // an agent ran: this one's
	}
	if r.Extra == nil {
		r.Extra, _ = json.Marshal(map[string]any{"mbx.answered_as": from.ID})
	}
	return d.endHeld(ctx, row, r, map[string]any{"of": from.ID})
}

// gather ends a task that several agents were asked for with what they answered.
func (d *Dispatcher) gather(ctx context.Context, row task.Task, children []task.Child) error {
	var members []conversation.Member
	for _, c := range children {
		if c.Tie != envelope.Member {
			continue
		}
		r, err := d.answerOfChild(ctx, c.Task)
		if err != nil {
			return err
		}
		members = append(members, conversation.Member{Agent: c.Agent, Result: r})
	}
	r := conversation.Combine(row.ID, members)
	r.Time = envelope.TimeUsed{Started: row.Received, Finished: time.Now()}
	r.Time.Wall = r.Time.Finished.Sub(r.Time.Started)
	return d.endHeld(ctx, row, r, map[string]any{"members": len(members)})
}

// endHeld ends a task that waits for words with an answer that others have given.
func (d *Dispatcher) endHeld(ctx context.Context, row task.Task, r envelope.Result, data map[string]any) error {
	run, err := d.runOf(ctx, row)
	if err != nil {
		return err
	}
	o := task.Outcome{Result: r, Exit: task.Exit{Started: run.Started, Finished: run.Finished}}
	t, err := d.prepareTurn(ctx, row, run.Terms, o)
	if err != nil {
		return err
	}
	data["status"] = r.Status
	if r.Error != (envelope.Error{}) {
		data["error"], data["message"] = r.Error.Kind, r.Error.Message
	}
	t.event = event(row, ending(o), data)
	return d.takeAsRead(ctx, t)
}
