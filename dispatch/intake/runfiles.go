package intake

import (
	"context"
	"runtime"
	"slices"
	"time"

	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// RunFiles reads the task files of runs in sandboxes. What a line says about its author doesn't
// count: the ledger knows the run to which the file belongs.
type RunFiles struct {
	Tail    *mailbox.Tail
	authors map[string]*task.Task // the tasks of the runs, by file
	kept    map[string]bool       // files that were put away since the last look
	empty   bool                  // the last look found no file, and will find none before another change
	changed time.Time             // the last change of the directory before that look
}

// clockStep is longer than the steps in which the clock of a file system goes: a change that is as
// old was followed by no other with the same time.
const clockStep = time.Second

// NewRunFiles makes RunFiles of a Tail.
func NewRunFiles(tail *mailbox.Tail) *RunFiles {
	return &RunFiles{Tail: tail, authors: map[string]*task.Task{}, kept: map[string]bool{}}
}

// lookAtRuns accepts the new lines of the task files of runs, and puts files away that have no
// more.
func (in *Intake) lookAtRuns(ctx context.Context) (paused bool, err error) {
	files := in.RunFiles
	changed, err := in.State.RunFilesChanged()
	if err != nil || files.empty && changed.Equal(files.changed) {
		return false, err
	}
	files.empty = false
	for more := true; more; {
		over, err := in.endedRuns(ctx)
		if err != nil {
			return false, err
		}
		before := files.Tail.Names()
		if paused, err := in.readRunFiles(ctx); paused || err != nil || ctx.Err() != nil {
			return paused, err
		}
		now := files.Tail.Names()
		files.kept = map[string]bool{} // the look has left them out
		ended, err := in.keepRead(over)
		if err != nil {
			return false, err
		}
		more = ended || slices.ContainsFunc(now, func(file string) bool { return !slices.Contains(before, file) })
	}
	files.empty = len(files.Tail.Names()) == 0 && time.Since(changed) > clockStep
	files.changed = changed
	return false, nil
}

// readRunFiles accepts the new lines of the task files of runs.
func (in *Intake) readRunFiles(ctx context.Context) (paused bool, err error) {
	for ctx.Err() == nil {
		if !in.Queue.HasRoom() {
			return true, nil
		}
		batch, err := in.RunFiles.Tail.Next()
		if err != nil || batch.Empty() {
			return false, err
		}
		author, _, err := in.authorOf(ctx, batch.Cursor.Path)
		if err != nil {
			return false, err
		}
		submissions := in.decode(batch.Lines, runtime.GOMAXPROCS(0))
		for _, c := range submissions {
			c.WrittenBy(author)
		}
		if err := in.acceptBatch(ctx, batch, submissions); err != nil {
			return false, err // the next look reads the batch again
		}
		in.RunFiles.Tail.Done(batch)
	}
	return false, nil
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
// know it, and the run if it isn't in progress.
func (in *Intake) authorOf(ctx context.Context, file string) (*task.Task, task.Run, error) {
	if author := in.RunFiles.authors[file]; author != nil && len(in.Runs.Of(author.Seq)) > 0 {
		return author, task.Run{}, nil
	}
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
	in.RunFiles.authors[file] = &rows[at]
	return &rows[at], runs[n], nil
}

// keepRead puts files away whose lines are all read. A file without a newline at its end gets
// one, so that its last line is read; then ended is set.
func (in *Intake) keepRead(over []string) (ended bool, err error) {
	for _, file := range over {
		name, ok := mailbox.ParseRunFile(file)
		if !ok {
			continue
		}
		if in.RunFiles.Tail.Unread(file) > 0 {
			if err := in.State.EndLine(name); err != nil {
				return false, err
			}
			ended = true
			continue
		}
		if err := in.State.KeepRunFile(name); err != nil {
			return false, err
		}
		delete(in.RunFiles.authors, file)
		in.RunFiles.kept[file] = true
	}
	return ended, nil
}
