package intake

import (
	"context"
	"runtime"
	"slices"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// RunFiles reads the task files of runs in sandboxes. What a line says about its author doesn't
// count: the ledger knows the run to which the file belongs.
type RunFiles struct {
	Tail    *mailbox.Tail
	kept    map[string]bool   // files that were put away since the last look
	empty   bool              // the last look found no file, and will find none before another change
	changed time.Time         // the last change of the directory before that look
	faults  map[string]string // why files can't be put away, as reported
}

// clockStep is longer than the steps in which the clock of a file system goes: a change that is as
// old was followed by no other with the same time.
const clockStep = time.Second

// NewRunFiles makes RunFiles of a Tail.
func NewRunFiles(tail *mailbox.Tail) *RunFiles {
	return &RunFiles{Tail: tail, kept: map[string]bool{}, faults: map[string]string{}}
}

// lookAtRuns accepts new lines of the task files of runs, and puts files away that have no more.
// It reports whether there may be more to accept or to put away.
func (in *Intake) lookAtRuns(ctx context.Context) (p progress, err error) {
	files := in.RunFiles
	changed, err := in.State.RunFilesChanged()
	if err != nil || files.empty && changed.Equal(files.changed) {
		return progress{}, err
	}
	files.empty = false
	over, err := in.endedRuns(ctx)
	if err != nil {
		return progress{}, err
	}
	before := files.Tail.Names()
	if p, err := in.readRunFiles(ctx); p != (progress{}) || err != nil || ctx.Err() != nil {
		return p, err
	}
	now := files.Tail.Names()
	files.kept = map[string]bool{} // the look has left them out
	p.more = in.keepRead(over) || slices.ContainsFunc(now, func(file string) bool { return !slices.Contains(before, file) })
	files.empty = !p.more && len(now) == 0 && time.Since(changed) > clockStep
	files.changed = changed
	return p, nil
}

// A progress says how far a look at the task files of runs came.
type progress struct {
	paused bool // the queue is full
	more   bool // there may be more for another look
}

// runFilesTurn is the most batches of runs before the mailbox has its turn.
const runFilesTurn = 16

// readRunFiles accepts new lines of the task files of runs.
func (in *Intake) readRunFiles(ctx context.Context) (progress, error) {
	for n := 0; ctx.Err() == nil; n++ {
		if !in.Queue.HasRoom() {
			return progress{paused: true}, nil
		}
		batch, err := in.RunFiles.Tail.Next()
		if err != nil || batch.Empty() {
			return progress{}, err
		}
		if n == runFilesTurn {
			return progress{more: true}, nil // the next turn begins with this batch
		}
		author, _, err := in.authorOf(ctx, batch.Cursor.Path)
		if err != nil {
			return progress{}, err
		}
		submissions := in.decode(batch.Lines, runtime.GOMAXPROCS(0))
		for _, c := range submissions {
			c.WrittenBy(author)
		}
		if err := in.acceptBatch(ctx, batch, submissions); err != nil {
			return progress{}, err // the next look reads the batch again
		}
		in.RunFiles.Tail.Done(batch)
	}
	return progress{}, nil
}

// endedRuns returns the files that the last look found and whose runs have ended: nobody writes
// to them any more.
func (in *Intake) endedRuns(ctx context.Context) (over []string, err error) {
	for _, file := range in.RunFiles.Tail.Names() {
		if in.RunFiles.kept[file] {
			continue
		}
		author, run, err := in.authorOf(ctx, file)
		if err != nil {
			return nil, err
		}
		if author != nil && len(in.Runs.Of(author.Seq)) > 0 {
			continue
		}
		if author == nil || run.Settled || !run.Finished.IsZero() { // a lost run has no time of its end
			over = append(over, file)
		}
	}
	return over, nil
}

// authorOf returns the task of the run to which a file belongs, or nil if the ledger doesn't
// know it, and the run.
func (in *Intake) authorOf(ctx context.Context, file string) (*task.Task, task.Run, error) {
	name, ok := mailbox.ParseRunFile(file)
	if !ok {
		return nil, task.Run{}, nil
	}
	rows, err := in.Ledger.Revisions(ctx, name.ID)
	at := slices.IndexFunc(rows, func(row task.Task) bool { return row.Revision == name.Revision })
	if err != nil || at < 0 {
		return nil, task.Run{}, err
	}
	runs, err := in.Ledger.Runs(ctx, rows[at].Seq)
	n := slices.IndexFunc(runs, func(r task.Run) bool { return r.Attempt == name.Attempt && r.ID == name.Run })
	if err != nil || n < 0 {
		return nil, task.Run{}, err
	}
	return &rows[at], runs[n], nil
}

// keepRead puts files away whose lines are all read. A file without a newline at its end gets
// one, so that its last line is read; then changed is set. A file that can't be put away stops no
// other.
func (in *Intake) keepRead(over []string) (changed bool) {
	for _, file := range over {
		name, ok := mailbox.ParseRunFile(file)
		if !ok {
			continue
		}
		if !in.RunFiles.Tail.AllRead(file) {
			ended, err := in.State.EndLine(name)
			in.reportRunFile(file, err)
			changed = changed || ended
			continue
		}
		err := in.State.KeepRunFile(name)
		in.reportRunFile(file, err)
		if err == nil {
			in.RunFiles.kept[file] = true
		}
	}
	return changed
}

// reportRunFile reports once why a file can't be put away; nil: it can.
func (in *Intake) reportRunFile(file string, err error) {
	reported := in.RunFiles.faults
	switch cause, was := reported[file]; {
	case err == nil && was:
		delete(reported, file)
		in.FaultLog.ReportFile(file, nil)
	case err != nil && cause != err.Error():
		reported[file] = err.Error()
		in.FaultLog.ReportFile(file, err)
	}
}
