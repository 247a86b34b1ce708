package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

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
