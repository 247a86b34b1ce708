package dispatch

import (
	"context"
	"math/rand/v2"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// finish makes the outcome of a run durable and shows it. The run directory
// holds the answer until the ledger does, so trying again is safe.
// A person may have to agree to that, by the terms of the run.
func (x *executor) finish(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome) {
	if o.Detached {
		x.info(row).Int("attempt", row.Attempt).Msg("run goes on without us")
		return
	}
	x.info(row).Int("exit_code", o.Exit.Code).Int64("took_ms", o.Exit.Wall.Milliseconds()).Str("status", string(o.Result.Status)).Msg("agent exited")
	switch {
	case o.Hold == task.AuthRequired:
		x.putBack(ctx, row, terms.Deadline, o)
	case o.Hold != "":
		x.completion.turn(ctx, row, terms, o)
	case !o.Retry && !x.completion.mended(row, o).Again, !x.again(ctx, row, terms.Deadline, o):
		x.completion.mend(ctx, row, terms, o)
	}
}

// again puts a task back whose run may be made once more, after a pause. It
// does not when the attempts are used up, or the pause would last longer than
// the deadline, if the run was under one.
func (x *executor) again(ctx context.Context, row task.Task, deadline time.Time, o task.Outcome) bool {
	runs, err := x.attempts(ctx, row)
	if err != nil {
		return true // the run directory still says what happened
	}
	failed := failures(runs, row.Attempt, o)
	if failed > x.agents.Retries(row.Agent) {
		return false
	}
	pause := time.Now()
	if o.Exit.Cause != task.CauseInterrupted {
		pause = pause.Add(backoff(x.agents.Backoff(row.Agent), failed))
	}
	if !deadline.IsZero() && !pause.Before(deadline) {
		return false
	}
	_, _ = x.writer.mustDecide(ctx, row, loads(row.Seq, true, false), &core.Again{
		Task: row.Seq, Until: pause, Run: ended(row, o), Data: conclusion(o),
	}) // after an error, which is logged, the run directory still says what happened
	return true
}

// attempts returns the runs of a task in spite of passing trouble: what is not in
// the tables of the ledger yet is brought there first.
func (x *executor) attempts(ctx context.Context, row task.Task) (runs []task.Run, err error) {
	err = x.persist(ctx, row, func() (err error) {
		runs, err = x.Ledger.Runs(context.WithoutCancel(ctx), row.Seq)
		return err
	})
	return runs, err
}

// failures counts the attempts that went wrong, this one included, which the
// ledger knows only as begun. One that we interrupted is no failure.
func failures(runs []task.Run, attempt int, o task.Outcome) int {
	failed := 0
	if o.Exit.Cause != task.CauseInterrupted {
		failed = 1
	}
	for _, run := range runs {
		void := run.Finished.IsZero() && run.ExitCode == 0 || run.Cause == task.CausePutBack || run.Cause == task.CauseNoAnswer // intended and never begun, or it did nothing
		if run.Attempt != attempt && !void && run.Cause != task.CauseInterrupted {
			failed++
		}
	}
	return failed
}

// longestPause is the most that backoff grows to.
const longestPause = 5 * time.Minute

// backoff is the pause after so many failures: first, doubling, and a random
// part shorter, so that what failed together is not tried again together.
func backoff(first time.Duration, failed int) time.Duration {
	pause := min(min(first, longestPause)<<min(max(failed-1, 0), 20), longestPause)
	return pause - rand.N(pause/4+1)
}

// persist tries until it can, or until work is cut short.
func (s *shared) persist(ctx context.Context, row task.Task, try func() error) error {
	for {
		err := try()
		if err == nil {
			s.faults.clear(recording)
			return nil
		}
		s.faults.report(recording, row, err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// ended is the ledger's record of how a run ended.
func ended(row task.Task, o task.Outcome) task.Run {
	run := task.Run{
		Task: row.Seq, Attempt: row.Attempt,
		Started: o.Exit.Started, Finished: o.Exit.Finished,
		PID: o.Exit.PID, ExitCode: o.Exit.Code, Signal: o.Exit.Signal, Cause: o.Exit.Cause,
	}
	if cost := o.Result.Cost; cost != nil {
		run.Tokens = &cost.Tokens
		if !cost.Unpriced {
			run.USDCents = &cost.USDCents
		}
	}
	return run
}

// ending is the kind of event with which a run ended.
func ending(o task.Outcome) task.Kind {
	if o.Result.Error.Kind == envelope.Cancelled {
		return task.KindTaskCancelled
	}
	return task.KindTaskFinished
}

func conclusion(o task.Outcome) map[string]any {
	data := map[string]any{"status": o.Result.Status, "exit_code": o.Exit.Code, "took_ms": o.Exit.Wall.Milliseconds()}
	if o.Result.Error != (envelope.Error{}) {
		data["error"] = o.Result.Error.Kind
		data["message"] = o.Result.Error.Message
	}
	return data
}

// admitNext lets the latest revision of a task in, if it was waiting for an
// earlier one to end.
func (d *Dispatcher) admitNext(ctx context.Context, row task.Task) {
	if row.Latest {
		return // and one that comes later doesn't wait for it
	}
	if err := d.tryAdmitNext(ctx, row.ID); err != nil {
		d.faults.report(judging, row, err)
		d.timers.After(row.Seq, retryPause)
	}
}

func (d *Dispatcher) tryAdmitNext(ctx context.Context, id envelope.ID) error {
	revisions, err := d.Ledger.Revisions(ctx, id)
	if err != nil || len(revisions) == 0 {
		return err
	}
	latest := len(revisions) - 1
	if revisions[latest].State != task.Received {
		return nil // its request may not be kept any more
	}
	return d.letIn(ctx, revisions[latest].Seq)
}

// letIn lets a revision in that waits for earlier ones, if none of them is in hand any
// more. Two ends of these may see to it: the later of them finds it queued, or running.
func (d *Dispatcher) letIn(ctx context.Context, seq int64) error {
	row, t, findings, err := d.reader.load(ctx, seq)
	if err != nil || row.State != task.Received {
		return err
	}
	verdict := core.Held(d.reader.judge(t, findings, time.Now()), core.Lasting(row.Reasons)...)
	if verdict, err = d.reader.judgeLineage(ctx, row, verdict); err != nil {
		return err
	}
	load := func(tx *transaction) (*core.State, error) { return loadRevisions(tx, row.ID) }
	_, err = d.writer.decideIfCurrent(ctx, load, &core.Judge{Task: seq, Seen: core.See(row), Request: t, Verdict: verdict})
	return err
}
