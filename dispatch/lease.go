package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// Why a task that waits is not somebody's.
var (
	ErrLeased    = errors.New("somebody else has claimed it")
	ErrLeaseOver = errors.New("that lease is over; claim it again")
)

// A Lease is a task that somebody has claimed, which nobody else can claim or
// answer until then.
type Lease struct {
	Task    task.Task
	Request []byte          // as it came
	Token   string          // what to show with the answer
	Until   time.Time       // and until when
	Spend   envelope.Budget // what may be spent on it; without a limit: anything
	task.Terms
}

// Claim gives the oldest task that waits for an agent to whoever wants to answer
// for it, and reports whether there is one. An agent that is paused, or that
// does not fetch its tasks, is a *ForbiddenError. Who claims is known by the token of the lease from then on, also
// after a restart; a lease that is not renewed ends by itself, and sooner when
// its Claimer has ended and another one of that name claims.
func (d *Dispatcher) Claim(ctx context.Context, agent string, by By, who Claimer) (l Lease, found bool, err error) {
	if err = d.whenReady(ctx); err == nil {
		err = d.mayClaim(agent)
	}
	if err == nil {
		err = d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
			l, found, err = d.lease(tx, agent, by, who, time.Now())
			return err
		})
	}
	if err == nil && found {
		l.Request, err = d.Ledger.Raw(ctx, l.Task.Seq)
	}
	if err != nil {
		return Lease{}, false, fmt.Errorf("claim a task of agent %q: %w", agent, err)
	}
	if found {
		d.log(l.Task).Info().Str("by", by.Who).Time("until", l.Until).Msg("task claimed")
		d.alarms.set(l.Task.Seq, l.Until)
	}
	return l, found, nil
}

func (d *Dispatcher) mayClaim(agent string) error {
	switch {
	case d.agents.Inbox(agent).File == "":
		return &ForbiddenError{"it is no agent here that fetches its tasks"}
	case d.pauses.has(agent):
		return &ForbiddenError{"it is paused"}
	}
	return nil
}

// lease gives a task away, inside a transaction.
func (d *Dispatcher) lease(tx *ledger.Tx, agent string, by By, who Claimer, now time.Time) (l Lease, found bool, err error) {
	row, found, err := claimable(tx, agent, who, now)
	if err != nil || !found {
		return Lease{}, false, err
	}
	run, _, err := tx.Run(task.RunName{Task: row.Seq, Attempt: row.Attempt})
	if err != nil {
		return Lease{}, false, err
	}
	if !row.Until.IsZero() {
		if err := tx.Log(event(row, task.KindLeaseExpired, whyOver(row, now))); err != nil {
			return Lease{}, false, err
		}
	}
	l = Lease{Token: who.token(), Until: now.Add(d.agents.Inbox(agent).Lease), Spend: run.Reserved, Terms: run.Terms}
	if _, err := tx.Move(row.Seq, task.Waiting, row.Attempt, task.Change{To: task.Waiting, Until: l.Until}); err != nil {
		return Lease{}, false, err
	}
	if err := tx.Lease(row, l.Token, now); err != nil {
		return Lease{}, false, err
	}
	row.Until, l.Task = l.Until, row
	return l, true, tx.Log(event(row, task.KindTaskClaimed, with(by.data(), "until", l.Until.UTC().Format(time.RFC3339Nano))))
}

// Renew has a lease last as long as a new one would, and returns until when. One
// that has lapsed is ErrLeaseOver, and one of somebody else ErrLeased. A task
// that waits for nobody is a *StateError, one that is another agent's a
// *ForbiddenError, and an id that is not known wraps ledger.ErrUnknown.
func (d *Dispatcher) Renew(ctx context.Context, id envelope.ID, agent, token string) (until time.Time, err error) {
	err = d.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = d.waiting(ctx, id, agent)
	}
	if err == nil {
		err = d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
			now := time.Now()
			fresh, err := entitled(tx, row, token, now)
			switch {
			case err != nil:
				return err
			case !fresh.ClaimedAt(now):
				return ErrLeaseOver
			}
			until = now.Add(d.agents.Inbox(agent).Lease)
			_, err = tx.Move(row.Seq, task.Waiting, row.Attempt, task.Change{To: task.Waiting, Until: until})
			return err
		})
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("renew the lease of %s: %w", id, err)
	}
	d.alarms.set(row.Seq, until)
	return until, nil
}

// waiting returns the revision of a task that waits for an agent.
func (d *Dispatcher) waiting(ctx context.Context, id envelope.ID, agent string) (task.Task, error) {
	revisions, err := d.revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	row := revisions[len(revisions)-1]
	for _, r := range slices.Backward(revisions) {
		if r.State == task.Waiting {
			row = r
			break
		}
	}
	switch {
	case row.Agent != agent:
		return row, &ForbiddenError{fmt.Sprintf("it is for the agent %q, not %q", row.Agent, agent)}
	case row.State != task.Waiting:
		return row, stateError(row)
	}
	return row, nil
}

// entitled says why a token does not let anybody answer a task, inside a
// transaction, and returns the task as it is now. What nobody has claimed anybody
// may answer who shows no token, or the one by which it was claimed last: a lease
// that lapsed, and that nobody else has taken, was not in vain. Any other token
// is of a request that was replaced.
func entitled(tx *ledger.Tx, row task.Task, token string, now time.Time) (task.Task, error) {
	fresh, found, err := tx.Task(row.Seq)
	if err != nil {
		return row, err
	}
	if !found || fresh.State != task.Waiting || fresh.Attempt != row.Attempt {
		return fresh, stateError(fresh)
	}
	was, err := tx.Delivery(row.Seq)
	switch {
	case err != nil:
		return fresh, err
	case fresh.ClaimedAt(now) && token != was.Lease:
		return fresh, ErrLeased
	case token != "" && token != was.Lease:
		return fresh, ErrLeaseOver
	}
	return fresh, nil
}

// lapse lets go of a lease that nobody has renewed.
func (d *Dispatcher) lapse(ctx context.Context, row task.Task, now time.Time) (task.Task, error) {
	lapsed := false
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) (err error) {
		lapsed = false
		if same, err := unmoved(tx, row); err != nil || !same {
			return err
		}
		lapsed, err = tx.Move(row.Seq, task.Waiting, row.Attempt, task.Change{To: task.Waiting})
		if err != nil || !lapsed {
			return err
		}
		return tx.Log(event(row, task.KindLeaseExpired, nil))
	})
	if err != nil || !lapsed {
		return row, err
	}
	d.log(row).Warn().Msg("lease is over; the task waits again")
	row.Until = time.Time{}
	if !row.Latest {
		d.admitNext(ctx, row) // it was only waited for because somebody had it
	}
	return row, nil
}
