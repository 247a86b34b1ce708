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
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
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
	state, err := store.TaskLoader(row.Seq, false, false)(tx)
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
		if state, err = le.Writer.Decide(ctx, store.TaskLoader(row.Seq, false, false), renew); err == nil {
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
	state, err := ib.Writer.Decide(ctx, store.TaskLoader(row.Seq, false, false), &core.Lapse{Task: row.Seq, Seen: core.See(row)})
	if errors.Is(err, core.ErrStale) {
		return row, nil
	}
	if err != nil {
		return row, err
	}
	ib.Log(row).Warn().Msg("lease is over; the task waits again")
	return state.Task(row.Seq).Task, nil
}

// ErrNoAnswer says that what was submitted is not an answer to the task. It can
// be mended, and submitted again.
var ErrNoAnswer = errors.New("that is no answer to it")

// A Submission is what somebody answers for an agent that fetches its tasks.
type Submission struct {
	Agent  string // whose task it is
	Token  string // of the lease; "" answers what nobody has claimed
	Answer []byte // an AgentTaskResult, or its output, as an agent of ours prints it
}

// Submit answers a task that waits. The answer is held against the same promises
// as that of an agent we run, and becomes the task's result, or is reviewed
// before; what it says that it cost settles the task's budget. One that cannot be
// read wraps ErrNoAnswer. Who shows the token of a lease that lapsed may still
// answer as long as nobody else has claimed the task; see Renew for the other
// errors.
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
	data := store.WithField(exchange.EndData(o), "by", by.Who)
	delete(data, "exit_code") // there was no process
	t.Event = store.Event(row, task.KindTaskFinished, data)
	if s.Token != "" {
		le.RecentRuns.Add(schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}) // what it has asked for may not be read yet
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

// mayAnswerNow returns the run that a submission is about, or why it comes to
// nothing; after the deadline the task is over.
func (le *leases) mayAnswerNow(ctx context.Context, row task.Task, token string) (run task.Run, err error) {
	now := time.Now()
	err = le.Writer.Update(ctx, func(tx *store.Transaction) (err error) {
		if _, err = store.Entitled(tx, row, token, now); err == nil {
			run, _, err = tx.Run(task.RunName{Task: row.Seq, Attempt: row.Attempt})
		}
		return err
	})
	if err != nil || !store.IsPast(run.Terms.Deadline, now) {
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

// A Claimer is the program that claims a task. When it has ended, another
// program of the same name can claim the task again before the lease is over.
// The zero value has no name: what it claims, it keeps until the lease is over.
type Claimer struct {
	Name    string
	Process runner.Process // zero: nobody can tell whether it has ended
}

// token returns a new secret for a lease. It names the claimer, so that a
// restart of the daemon does not forget who has the lease.
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

// claimable returns the oldest task that a claimer may have, inside a
// transaction, and whether there is one. What a program of the same name has
// claimed and left comes first.
func claimable(tx *store.Transaction, agent string, who Claimer, now time.Time) (task.Task, bool, error) {
	if who.Name == "" {
		return tx.Unclaimed(agent, now)
	}
	claimed, err := tx.Claimed(agent, now)
	if err != nil {
		return task.Task{}, false, err
	}
	for _, row := range claimed {
		if !row.Latest || store.IsPast(row.Deadline, now) {
			continue // nobody is to begin with it any more
		}
		was, err := tx.Delivery(row.Seq)
		if err != nil {
			return task.Task{}, false, err
		}
		if last := claimerOf(was.Lease); last.Name == who.Name && !runner.Alive(last.Process) {
			return row, true, nil
		}
	}
	return tx.Unclaimed(agent, now)
}
