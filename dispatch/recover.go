package dispatch

import (
	"context"
	"errors"
	"math"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// page is how many rows are read at once, so that a long history costs time
// but no memory.
const page = 1000

// recover takes up what an earlier daemon left. It is the only way to start,
// so the path of a crash is walked every day.
func (d *Dispatcher) recover(ctx context.Context) error {
	for after := int64(0); ; {
		rows, err := d.Ledger.Unsettled(ctx, after, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Status == envelope.Rejected { // there may be many, and nothing waits for them
				d.showLater(row)
			} else {
				d.proceed(ctx, row)
			}
			after = row.Seq
		}
		if len(rows) < page {
			break
		}
	}
	if err := d.recoverOpen(ctx); err != nil {
		return err
	}
	return errors.Join(d.canceller.cancelAgain(ctx), d.messenger.resumeNotifications(ctx))
}

// recoverOpen takes up what is not done, in the order in which it was accepted.
func (d *Dispatcher) recoverOpen(ctx context.Context) error {
	line := &turnLine{}
	for after := int64(0); ; {
		rows, err := d.Ledger.Unfinished(ctx, after, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := d.queueTurns(ctx, line, row.Seq); err != nil {
				return err
			}
			if err := d.resume(ctx, row); err != nil {
				return err
			}
			after = row.Seq
		}
		if len(rows) < page {
			return d.queueTurns(ctx, line, math.MaxInt64)
		}
	}
}

// A turnLine is how far the ledger's Turns were queued.
type turnLine struct {
	turns []ledger.Turn // read and not queued yet
	last  int64         // the Seq of the last one that was read
	whole bool          // all were read
}

// queueTurns queues the Turns that were accepted before a Seq.
func (d *Dispatcher) queueTurns(ctx context.Context, line *turnLine, before int64) error {
	for {
		for len(line.turns) > 0 && line.turns[0].Seq < before {
			t := line.turns[0]
			d.inbox.queueUp(task.Task{Seq: t.Seq, Agent: t.Agent, Requester: t.Requester})
			line.turns = line.turns[1:]
		}
		if line.whole || len(line.turns) > 0 {
			return nil
		}
		var err error
		if line.turns, err = d.Ledger.Turns(ctx, line.last, page); err != nil {
			return err
		}
		if line.whole = len(line.turns) < page; len(line.turns) > 0 {
			line.last = line.turns[len(line.turns)-1].Seq
		}
	}
}

// resume goes on with one unfinished task. A received one follows when the
// revision it waits for has ended, which comes earlier in the ledger.
func (d *Dispatcher) resume(ctx context.Context, row task.Task) error {
	if err := d.canceller.recoverTies(ctx, row); err != nil {
		return err
	}
	switch row.State {
	case task.Running:
		return d.executor.recoverRun(ctx, row)
	case task.Received:
		return d.tryAdmitNext(ctx, row.ID)
	}
	d.proceed(ctx, row)
	switch row.State {
	case task.Held:
		d.rejudge(row) // the rules may be other ones by now
		if core.WaitsForWords(row) {
			d.completion.joinNow(ctx, row.Seq)
		}
	case task.Review:
		d.completion.joinNow(ctx, row.Seq)
	case task.Waiting:
		return d.inbox.tend(ctx, row)
	}
	return nil
}

// recoverRun takes up a run whose daemon is gone. A run that was intended but
// never began is void and starts afresh; any other has its slots until it is
// over, and its answer is what lies in its directory.
func (x *executor) recoverRun(ctx context.Context, row task.Task) error {
	_, t, _, err := x.reader.load(ctx, row.Seq)
	if err != nil {
		return err
	}
	was, err := x.reader.runOf(ctx, row)
	if err != nil {
		return err
	}
	job := task.Job{
		Task: t, Revision: row.Revision, Attempt: row.Attempt,
		Dir: x.State.RunDir(row.ID, row.Revision, row.Attempt), RunID: was.ID, Allowance: was.Reserved, Terms: was.Terms,
	}
	same := was.Boot != "" && was.Boot == runner.Evidence(job.Dir) // else what the directory does not show proves nothing: it is not synced
	switch {
	case !x.agents.HasDir(row.Agent):
		job.Dir = ""
	case same && runner.Void(job.Dir):
		x.log(row).Info().Int("attempt", row.Attempt).Msg("run never began; starting afresh")
		return x.startAfresh(ctx, row)
	}
	x.log(row).Info().Int("attempt", row.Attempt).Msg("run of an earlier daemon found")
	it := schedule.Item{Seq: row.Seq, Agent: row.Agent, Requester: row.Requester}
	x.queue.Adopt(it)
	run := x.runs.begin(ctx, it)
	run.began.Store(true)
	x.publisher.guardRun(run, row, job.Terms)
	x.meters.measure(run, row, &job)
	job.Report = x.messenger.reporting(ctx, row)
	x.finishing.Go(func() {
		defer x.queue.Done()
		defer x.canceller.stopAgain(ctx, run)
		defer x.over(run)
		outcome := run.conclude(x.agents.Recover(run.ctx, job))
		x.queue.Release(it)
		if outcome, read := x.readAnswer(ctx, run, row, job, outcome); read {
			x.finish(ctx, row, job.Terms, outcome)
		}
	})
	return nil
}

// startAfresh queues a task whose run was intended and never began, as Void has
// made sure of.
func (x *executor) startAfresh(ctx context.Context, row task.Task) error {
	_, err := x.writer.decideIfCurrent(ctx, loads(row.Seq, false, false), &core.Void{Task: row.Seq, Attempt: row.Attempt, Keep: true, Show: true})
	return err
}

// runOf returns what is known of the run a task has: of no known boot when
// that is nothing, for it may have begun then.
func (rd *reader) runOf(ctx context.Context, row task.Task) (task.Run, error) {
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	if err != nil {
		return task.Run{}, err
	}
	for _, run := range runs {
		if run.Attempt == row.Attempt {
			return run, nil
		}
	}
	return task.Run{Terms: task.Terms{Deadline: row.Deadline}}, nil
}

// keepResults puts missing result files back, at the start and whenever the
// directory was replaced.
func (pb *publisher) keepResults(ctx context.Context) {
	for {
		pb.restoreResults(ctx)
		pb.queue.Done() // of the rest that began before
		select {
		case <-ctx.Done():
			return
		case <-pb.missing:
			pb.queue.AddBusy()
		}
	}
}

// rootReplaced has the result files of all tasks put into a new root directory.
func (pb *publisher) rootReplaced() {
	pb.roots.Add(1)
	pb.seekMissing()
}

// seekMissing has keepResults look for what is missing.
func (pb *publisher) seekMissing() {
	select {
	case pb.missing <- struct{}{}:
	default: // it will be gone through anyway
	}
}

// restoreResults puts result files back that are missing although the ledger
// has them. It goes through the whole history in the background, and rests
// where it cannot go on.
func (pb *publisher) restoreResults(ctx context.Context) {
	for after := int64(0); ctx.Err() == nil; {
		finals, err := pb.Ledger.Finals(ctx, after, page)
		if err == nil {
			err = pb.restoreMissing(ctx, finals)
		}
		if err == nil && len(finals) > 0 {
			after = finals[len(finals)-1].Seq
		}
		switch {
		case err != nil:
			pb.faults.report(restoring, task.Task{}, err)
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		case len(finals) < page:
			pb.faults.clear(restoring)
			return
		}
	}
}

// restoreMissing puts the results of finished tasks back that are missing.
func (pb *publisher) restoreMissing(ctx context.Context, finals []ledger.Final) error {
	ids := make([]envelope.ID, len(finals))
	for i, f := range finals {
		ids[i] = f.ID
	}
	for i, there := range pb.Box.HaveResults(ids) {
		if there {
			continue
		}
		row, err := pb.Ledger.Task(ctx, finals[i].Seq)
		if err != nil {
			return err
		}
		if err := pb.restore(ctx, row); err != nil {
			return err
		}
	}
	return nil
}
