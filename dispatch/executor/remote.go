package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// errNoPlace says that a run can't go to the runner whose place it took.
var errNoPlace = errors.New("no place on a runner")

// assign says which runner gets the next run of a task.
func (p *Preparer) assign(it schedule.Item, row task.Task, j task.Job) (task.Assignment, error) {
	at, err := p.Agents.Runners.Assign(it.Grant, row.Seq, j)
	if err != nil {
		return at, fmt.Errorf("%w: %w", errNoPlace, err)
	}
	return at, nil
}

// holdUnplaced holds a task until a runner that may have it has room.
func (p *Preparer) holdUnplaced(ctx context.Context, row task.Task, why *schedule.UnfitError) error {
	c := &core.HoldQueued{Task: row.Seq, Attempt: row.Attempt, Reason: task.NoRunner, Why: why.Why}
	held, err := p.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, false, false), c)
	if held {
		p.Log(row).Info().Str("reason", why.Why).Msg("no runner with room may have the task")
	}
	return err
}

// requeueAfter puts an item back into the queue after an error. Without room it waits there for a runner.
func (x *Executor) requeueAfter(ctx context.Context, it schedule.Item, err error) {
	it.Remote, it.Grant = false, nil
	if errors.Is(err, schedule.ErrNoRoom) && ctx.Err() == nil {
		x.Queue.Push(it)
		return
	}
	x.requeueLater(ctx, it)
}

// dropPlace gives back the place of an item whose run isn't sent.
func (x *Executor) dropPlace(it schedule.Item) {
	if it.Grant != nil {
		x.Agents.Runners.Drop(it.Grant)
	}
}

// settle tells the runner of a run that its end is durable. A run that goes on has no end.
func (x *Executor) settle(ctx context.Context, row task.Task, j task.Job, o task.Outcome) {
	if !j.At.IsRemote() || o.Detached || x.Agents.Runners == nil {
		return
	}
	var run task.Run
	err := x.Persist(ctx, row, func() (err error) { // or its runner would be asked for the answer again and again
		run, err = x.Reader.RunOf(context.WithoutCancel(ctx), row)
		return err
	})
	if err != nil || run.At == j.At && run.Finished.IsZero() && !run.Settled {
		return // its runner keeps the answer, and sends it again
	}
	x.Agents.Runners.Settled(j.At)
}

// restartRemote starts a task afresh whose run its runner never began, and never will, after a pause that grows, because
// the next run may end the same way.
func (x *Executor) restartRemote(ctx context.Context, row task.Task, why error) {
	x.Log(row).Info().Int("attempt", row.Attempt).Str("reason", why.Error()).Msg("run never began; starting afresh")
	follow, moved := x.void(ctx, row, core.Void{Keep: true, Show: true})
	if !moved {
		return
	}
	runs, _ := x.runsOf(ctx, row) // after an error, the daemon stops
	x.requeueAfterPause(ctx, follow, unsentPause(voided(runs)))
}

// voided counts the last runs of a task, one after the other, that never began.
func voided(runs []task.Run) (n int) {
	for _, run := range slices.Backward(runs) {
		if !run.Settled || !run.Finished.IsZero() {
			break
		}
		n++
	}
	return n
}

// recoverRemote waits for a run on a runner that an earlier daemon began.
func (x *Executor) recoverRemote(ctx context.Context, row task.Task, recorded task.Run, job task.Job) {
	job.At, job.Rebooted = recorded.At, false
	x.Log(row).Info().Int("attempt", row.Attempt).Str("runner", job.At.Runner).Msg("run of an earlier daemon is on a runner")
	x.await(ctx, schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester, Remote: true}, row, job)
}

// addReach lets a run say whether its runner can be reached.
func (p *Preparer) addReach(ctx context.Context, row task.Task, j *task.Job) {
	if !j.At.IsRemote() {
		return
	}
	j.Reach = func(reachable bool, until time.Time) error {
		c := &core.NoteReach{Task: row.Seq, Attempt: row.Attempt, Reachable: reachable, Until: until}
		_, err := p.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, false), c)
		return err
	}
}
