package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// The leases give tasks to programs that fetch them, and take their answers.
type leases struct {
	*outbox.Base
	*readiness
	steps     *steps
	completer *exchange.Completer
	inbox     *inboxes
}

// A Lease is a task that somebody has claimed, which nobody else can claim or
// answer until then.
type Lease struct {
	Task    task.Task       // as it was before
	Request []byte          // as it came
	Token   string          // what to show with the answer
	Until   time.Time       // and until when
	Spend   envelope.Budget // what may be spent on it; without a limit: anything
	task.Terms
}

// Claim gives the oldest task that waits for an agent to a program that wants to answer
// for it, and reports whether there is one. An agent that is paused, or that
// does not fetch its tasks, is a *ForbiddenError. Who claims is known by the token of the lease from then on, also
// after a restart; a lease that is not renewed ends by itself, and sooner when
// its Claimer has ended and another one of that name claims.
func (le *leases) Claim(ctx context.Context, agent string, by core.By, who Claimer) (l Lease, found bool, err error) {
	if err = le.whenReady(ctx); err == nil {
		err = le.mayClaim(agent)
	}
	if err == nil {
		err = le.Writer.Update(ctx, func(tx *store.Transaction) (err error) {
			l, found, err = le.lease(tx, agent, by, who, time.Now())
			return err
		})
	}
	if err == nil && found {
		l.Request, err = le.Ledger.Raw(ctx, l.Task.Seq)
	}
	if err != nil {
		return Lease{}, false, fmt.Errorf("claim a task of agent %q: %w", agent, err)
	}
	if found {
		le.Log(l.Task).Info().Str("by", by.Who).Time("until", l.Until).Msg("task claimed")
		le.Timers.Set(l.Task.Seq, l.Until)
	}
	return l, found, nil
}

func (le *leases) mayClaim(agent string) error {
	switch {
	case le.Agents.Inbox(agent).File == "":
		return &core.ForbiddenError{Reason: "it is no agent here that fetches its tasks"}
	case le.Pauses.Has(agent):
		return &core.ForbiddenError{Reason: "it is paused"}
	}
	return nil
}

// lease gives a task away, inside a transaction.
func (le *leases) lease(tx *store.Transaction, agent string, by core.By, who Claimer, now time.Time) (l Lease, found bool, err error) {
	row, found, err := claimable(tx, agent, who, now)
	if err != nil || !found {
		return Lease{}, false, err
	}
	state, err := store.Loads(row.Seq, false, false)(tx)
	if err != nil {
		return Lease{}, false, err
	}
	l.Token = who.token()
	answer, err := le.Writer.DecideIn(tx, state, &core.Claim{
		Task: row.Seq, By: by, Token: l.Token, Lasts: le.Agents.Inbox(agent).Lease, Ended: row.ClaimedAt(now),
	}, now)
	if err != nil || answer != nil {
		return Lease{}, false, cmp.Or(err, answer)
	}
	t := state.Task(row.Seq)
	l.Task, l.Until = row, t.Until // as it was when it was claimed
	if t.Run != nil {
		l.Spend, l.Terms = t.Run.Reserved, t.Run.Terms
	}
	return l, true, nil
}

// Renew has a lease last as long as a new one would, and returns until when. One
// that has lapsed is ErrLeaseOver, and one of somebody else ErrLeased. A task
// that waits for nobody is a *StateError, one that is another agent's a
// *ForbiddenError, and an id that is not known wraps ledger.ErrUnknown.
func (le *leases) Renew(ctx context.Context, id envelope.ID, agent, token string) (until time.Time, err error) {
	err = le.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = le.Reader.Waiting(ctx, id, agent)
	}
	if err == nil {
		var state *core.State
		renew := &core.Renew{Task: row.Seq, Attempt: row.Attempt, Token: token, Lasts: le.Agents.Inbox(agent).Lease}
		if state, err = le.Writer.Decide(ctx, store.Loads(row.Seq, false, false), renew); err == nil {
			until = state.Task(row.Seq).Until
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("renew the lease of %s: %w", id, err)
	}
	le.Timers.Set(row.Seq, until)
	return until, nil
}

// endLease lets go of a lease that nobody has renewed.
func (ib *inboxes) endLease(ctx context.Context, row task.Task) (task.Task, error) {
	state, err := ib.Writer.Decide(ctx, store.Loads(row.Seq, false, false), &core.Lapse{Task: row.Seq, Seen: core.See(row)})
	if errors.Is(err, core.ErrStale) {
		return row, nil
	}
	if err != nil {
		return row, err
	}
	ib.Log(row).Warn().Msg("lease is over; the task waits again")
	return state.Task(row.Seq).Task, nil
}
