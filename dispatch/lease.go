package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/testtools/fault"
)

// leases gives tasks to programs that fetch them, and takes their answers.
type leases struct {
	*outbox.Base
	*readiness
	steps     *steps
	completer *exchange.Completer
	inbox     *inboxes
}

// A Lease is a claimed task. No other program can claim or answer the task until the lease
// ends.
type Lease struct {
	Task    task.Task       // as it was before the claim
	Request []byte          // the bytes of the task line
	Token   string          // to be shown with the answer
	Until   time.Time       // the end of the lease
	Spend   envelope.Budget // the budget of the task; zero: no limit
	task.Terms
}

// Claim gives the oldest task that waits for an agent to a program that wants to answer it, and
// reports whether there is one. The error is a *ForbiddenError when the agent is paused or does
// not fetch its tasks. The token of the lease identifies the claimer, also after a restart. A
// lease that is not renewed ends by itself. It ends earlier when its Claimer has ended and
// another Claimer of that name claims.
func (le *leases) Claim(ctx context.Context, agent string, by core.By, claimer Claimer) (lease Lease, found bool, err error) {
	if err = le.whenReady(ctx); err == nil {
		err = le.mayClaim(agent)
	}
	if err == nil {
		err = le.Writer.Update(ctx, func(tx *store.Transaction) (err error) {
			lease, found, err = le.lease(tx, agent, by, claimer, time.Now())
			return err
		})
	}
	if err == nil && found {
		lease.Request, err = le.Ledger.Raw(ctx, lease.Task.Seq)
	}
	if err != nil {
		return Lease{}, false, fmt.Errorf("claim a task of agent %q: %w", agent, err)
	}
	if found {
		le.Log(lease.Task).Info().Str("by", by.Who).Time("until", lease.Until).Msg("task claimed")
	}
	return lease, found, nil
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

// lease gives a task to a claimer, inside a transaction.
func (le *leases) lease(tx *store.Transaction, agent string, by core.By, claimer Claimer, now time.Time) (claimed Lease, found bool, err error) {
	row, found, err := claimable(tx, agent, claimer, now)
	if err != nil || !found {
		return Lease{}, false, err
	}
	state, err := store.TaskLoader(row.Seq, false, false)(tx)
	if err != nil {
		return Lease{}, false, err
	}
	claimed.Token = claimer.token()
	answer, err := le.Writer.DecideIn(tx, state, &core.Claim{
		Task: row.Seq, By: by, Token: claimed.Token, Lasts: le.Agents.Inbox(agent).Lease, Ended: row.ClaimedAt(now),
	}, now)
	if err != nil || answer != nil {
		return Lease{}, false, cmp.Or(err, answer)
	}
	t := state.Task(row.Seq)
	claimed.Task, claimed.Until = row, t.Until // as it was before the claim
	if t.Run != nil {
		claimed.Spend, claimed.Terms = t.Run.Reserved, t.Run.Terms
	}
	return claimed, true, nil
}

// Renew extends a lease to the duration of a new one, and returns its end. Errors: ErrLeaseOver
// for a lease that lapsed, ErrLeased for another claimer's lease, *StateError for a task that
// doesn't wait, *ForbiddenError for a task of another agent; the error of an unknown id wraps
// ledger.ErrUnknown.
func (le *leases) Renew(ctx context.Context, id envelope.ID, agent, token string) (until time.Time, err error) {
	err = le.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = le.Reader.Waiting(ctx, id, agent)
	}
	if err == nil {
		var state *core.State
		renew := &core.Renew{Task: row.Seq, Attempt: row.Attempt, Token: token, Lasts: le.Agents.Inbox(agent).Lease}
		if state, err = le.Writer.Decide(ctx, store.TaskLoader(row.Seq, false, false), renew); err == nil {
			until = state.Task(row.Seq).Until
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("renew the lease of %s: %w", id, err)
	}
	return until, nil
}

// endLease ends a lease that was not renewed.
func (ib *inboxes) endLease(ctx context.Context, row task.Task) (task.Task, error) {
	state, err := ib.Writer.Decide(ctx, store.TaskLoader(row.Seq, false, false), &core.Lapse{Task: row.Seq, Seen: core.See(row)})
	if errors.Is(err, core.ErrStale) {
		return row, nil
	}
	if err != nil {
		return row, err
	}
	ib.Log(row).Warn().Msg("lease expired; the task waits again")
	return state.Task(row.Seq).Task, nil
}

// ErrNoAnswer says that the submission is not an answer to the task. The program can correct it
// and submit again.
var ErrNoAnswer = errors.New("not a valid answer to the task")

// A Submission is an answer for an agent that fetches its tasks.
type Submission struct {
	Agent  string // the agent of the task
	Token  string // of the lease; "" answers a task without a lease
	Answer []byte // an AgentTaskResult, or its output alone, as agents print it
}

// Submit answers a task that waits. The answer has to meet the same requirements as the answer
// of an agent that the daemon runs. It becomes the task's result, or goes to review first; the
// cost that it reports settles the task's budget. The error of an unreadable answer wraps
// ErrNoAnswer. The token of a lapsed lease is still valid until another program claims the
// task. For the other errors see Renew.
func (le *leases) Submit(ctx context.Context, id envelope.ID, s Submission, by core.By) error {
	err := le.whenReady(ctx)
	var row task.Task
	if err == nil {
		row, err = le.Reader.Waiting(ctx, id, s.Agent)
	}
	if err == nil {
		err = le.submit(ctx, row, s, by)
	}
	if err != nil {
		return fmt.Errorf("submit the result of %s: %w", id, err)
	}
	return nil
}

func (le *leases) submit(ctx context.Context, row task.Task, s Submission, by core.By) error {
	run, err := le.mayAnswerNow(ctx, row, s.Token)
	if err != nil {
		return err
	}
	job, err := le.Reader.JobOf(ctx, row, run)
	if err != nil {
		return err
	}
	o, err := le.Meters.JudgeAnswer(ctx, row, run, job, s.Answer)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	t, err := le.completer.Prepare(ctx, row, run.Terms, o)
	if err != nil {
		return err
	}
	data := store.WithField(o.EndData(), "by", by.Who)
	delete(data, "exit_code") // there was no process
	t.Event = store.Event(row, task.KindTaskFinished, data)
	if s.Token != "" {
		le.RecentRuns.Add(schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}) // its requests may be unread
	}
	follow, err := le.Writer.Commit(ctx, func(tx *store.Transaction) error {
		if t.Row, err = store.Entitled(tx, row, s.Token, time.Now()); err != nil {
			return err
		}
		return le.completer.Apply(tx, t)
	})
	if err != nil {
		return err
	}
	fault.Point("submitted")
	le.Log(row).Info().Str("by", by.Who).Str("status", string(t.Next.Status)).Msg("answer submitted")
	le.steps.onCommitted(ctx, follow)
	return nil
}

// mayAnswerNow returns the run that a submission answers, or why the submission is not
// possible. It ends the task after the deadline.
func (le *leases) mayAnswerNow(ctx context.Context, row task.Task, token string) (run task.Run, err error) {
	now := time.Now()
	err = le.Writer.Update(ctx, func(tx *store.Transaction) (err error) {
		if _, err = store.Entitled(tx, row, token, now); err == nil {
			run, _, err = tx.Run(task.RunName{Task: row.Seq, Attempt: row.Attempt})
		}
		return err
	})
	if err != nil || !core.IsPast(run.Terms.Deadline, now) {
		return run, err
	}
	if err := le.inbox.endOverdue(ctx, row, run); err != nil {
		return run, err
	}
	if row, err = le.Ledger.Task(ctx, row.Seq); err == nil {
		err = core.StateErrorOf(row)
	}
	return run, err
}

// A Claimer is the program that claims a task. When it has ended, another program of the same
// name can claim the task before the lease is over. The zero value has no name: its claims last
// until the lease is over.
type Claimer struct {
	Name    string
	Process runner.Process // zero: unknown, so it counts as alive
}

// token returns a new secret for a lease. It names the claimer, so that a restarted daemon
// still knows the claimer.
func (c Claimer) token() string {
	secret := uuid.NewString()
	if c.Name == "" || c.Process.PID == 0 {
		return secret
	}
	return fmt.Sprintf("%s %d %d %s %s", secret, c.Process.PID, c.Process.Start, c.Process.Boot, c.Name)
}

// claimerOf returns the claimer that a token names; zero for none.
func claimerOf(token string) Claimer {
	parts := strings.SplitN(token, " ", 5)
	if len(parts) < 5 {
		return Claimer{}
	}
	pid, err := strconv.Atoi(parts[1])
	start, failed := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || failed != nil {
		return Claimer{}
	}
	return Claimer{Name: parts[4], Process: runner.Process{PID: pid, Start: start, Boot: parts[3]}}
}

// claimable returns the oldest task that a claimer may have, inside a transaction, and whether
// there is one. A task that an ended program of the same name has claimed comes first.
func claimable(tx *store.Transaction, agent string, claimer Claimer, now time.Time) (task.Task, bool, error) {
	if claimer.Name == "" {
		return tx.Unclaimed(agent, now)
	}
	claimed, err := tx.Claimed(agent, now)
	if err != nil {
		return task.Task{}, false, err
	}
	for _, row := range claimed {
		if !row.Latest || core.IsPast(row.Deadline, now) {
			continue // no program may start it any more
		}
		delivery, err := tx.Delivery(row.Seq)
		if err != nil {
			return task.Task{}, false, err
		}
		if previous := claimerOf(delivery.Lease); previous.Name == claimer.Name && !runner.Alive(previous.Process) {
			return row, true, nil
		}
	}
	return tx.Unclaimed(agent, now)
}
