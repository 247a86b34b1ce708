package index

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// unsettled is spelled as the partial index has it, or that would not be used.
const unsettled = "state = 'done' AND (put = 0 OR delivered = 0)"

// Open returns up to limit revisions after afterSeq that are not Done, or Done and not
// settled, in order of Seq, with the places of their bodies.
func (r *Reader) Open(ctx context.Context, afterSeq int64, limit int) ([]Task, error) {
	return list(ctx, r, scanStored, "open tasks", "SELECT "+storedColumns+" FROM tasks WHERE state <> 'done' AND seq > ?1 UNION ALL "+
		"SELECT "+storedColumns+" FROM tasks WHERE "+unsettled+" AND seq > ?1 ORDER BY seq LIMIT ?2", afterSeq, limit)
}

// LastSeqs returns the highest Seqs of the tasks, approvals, messages and dead letters.
func (r *Reader) LastSeqs(ctx context.Context) (seqs [4]int64, err error) {
	for i, table := range []string{"tasks", "approvals", "messages", "dead_letters"} {
		if seqs[i], _, err = first(ctx, r.read, one[int64], "SELECT coalesce(max(seq), 0) FROM "+table); err != nil {
			return seqs, fmt.Errorf("look up the last of %s: %w", table, err)
		}
	}
	return seqs, nil
}

// A Final names a task that has a result file.
type Final struct {
	Seq int64 // of its latest revision
	ID  envelope.ID
}

// Finals returns up to limit tasks after afterSeq whose latest revision is Done and has its
// result file in place, in order of Seq. It reads done tasks: a second for a million.
func (r *Reader) Finals(ctx context.Context, afterSeq int64, limit int) ([]Final, error) {
	scan := func(r row) (f Final, err error) {
		err = r.Scan(&f.Seq, &f.ID)
		return f, err
	}
	return list(ctx, r, scan, "final results",
		"SELECT seq, id FROM tasks WHERE seq > ? AND latest = 1 AND state = 'done' AND put = 1 AND result_sum <> '' ORDER BY seq LIMIT ?", afterSeq, limit)
}

// Children returns the ids of the tasks that runs of a task have requested, in the order in
// which they came.
func (r *Reader) Children(ctx context.Context, task int64) ([]envelope.ID, error) {
	return list(ctx, r, one[envelope.ID], fmt.Sprintf("children of task %d", task),
		"SELECT id FROM tasks WHERE parent = ? AND parent <> 0 GROUP BY id ORDER BY min(seq)", task)
}

// ChildrenBefore counts the revisions that runs of a task have requested before the revision
// with this Seq.
func (r *Reader) ChildrenBefore(ctx context.Context, task, seq int64) (int, error) {
	n, _, err := first(ctx, r.read, one[int], "SELECT count(*) FROM tasks WHERE parent = ? AND parent <> 0 AND seq < ?", task, seq)
	if err != nil {
		return 0, fmt.Errorf("count children of task %d: %w", task, err)
	}
	return n, nil
}

var dependentsQuery = "SELECT coalesce((SELECT tie FROM conversations WHERE task = t.seq), ''), " + definitions[tasks].names("t.") +
	" FROM tasks t WHERE t.parent = ? AND t.parent <> 0 ORDER BY t.seq"

// A Child is a task below another one, with its tie and the places of its bodies.
type Child struct {
	Task
	Tie envelope.Tie
}

// Dependents returns all revisions that belong to a task, the oldest first.
func (r *Reader) Dependents(ctx context.Context, task int64) ([]Child, error) {
	scan := func(r row) (c Child, err error) {
		c.Task, err = scanStored(prefixed{r, &c.Tie})
		return c, err
	}
	return list(ctx, r, scan, fmt.Sprintf("the tasks below task %d", task), dependentsQuery, task)
}

// prefixed is a row that has a column before those that are scanned.
type prefixed struct {
	row
	first any
}

// Scan implements row.
func (p prefixed) Scan(dest ...any) error { return p.row.Scan(append([]any{p.first}, dest...)...) }

// Runs returns the runs of the revision with this Seq, in order of attempt.
func (r *Reader) Runs(ctx context.Context, seq int64) (list []task.Run, err error) {
	stored, err := r.StoredRuns(ctx, seq)
	for i := range stored {
		run, failed := stored[i].Decode()
		if err = failed; err != nil {
			break
		}
		list = append(list, run)
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// StoredRuns is Runs without their terms decoded.
func (r *Reader) StoredRuns(ctx context.Context, seq int64) ([]Run, error) {
	return list(ctx, r, scanRun, fmt.Sprintf("runs of task %d", seq), "SELECT "+runColumns+" FROM runs WHERE task = ? ORDER BY attempt", seq)
}

// Approvals returns everything that was asked about the revision with this Seq, the first
// one first.
func (r *Reader) Approvals(ctx context.Context, task int64) ([]task.Consent, error) {
	return list(ctx, r, scanApproval, fmt.Sprintf("approvals of task %d", task), "SELECT "+approvalColumns+" FROM approvals WHERE task = ? ORDER BY seq", task)
}

// Consent returns the latest approval of a revision at a stage, and whether there is one.
func (r *Reader) Consent(ctx context.Context, seq int64, stage envelope.Approval) (task.Consent, bool, error) {
	list, err := r.Approvals(ctx, seq)
	for _, c := range slices.Backward(list) {
		if c.Stage == stage {
			return c, true, nil
		}
	}
	return task.Consent{}, false, err
}

// Delivery returns the delivery of a task to an inbox; zero for a task that was never to be
// delivered.
func (r *Reader) Delivery(ctx context.Context, seq int64) (task.Delivery, error) {
	d, _, err := first(ctx, r.read, scanDelivery, "SELECT appended, claimed, lease FROM deliveries WHERE task = ?", seq)
	if err != nil {
		return task.Delivery{}, fmt.Errorf("look up delivery of task %d: %w", seq, err)
	}
	return d, nil
}

// Balance returns an account on a day; an account of which nothing was reserved or spent is
// empty.
func (r *Reader) Balance(ctx context.Context, owner, day string) (task.Balance, error) {
	b, _, err := first(ctx, r.read, scanAccount, "SELECT "+accountColumns+" FROM accounts WHERE owner = ? AND day = ?", owner, day)
	if err != nil {
		return task.Balance{}, fmt.Errorf("read account %s of %s: %w", owner, day, err)
	}
	b.Owner, b.Day = owner, day
	return b, nil
}

// Balances returns the accounts of a day of which something was reserved or spent, in order
// of their owners.
func (r *Reader) Balances(ctx context.Context, day string) ([]task.Balance, error) {
	return list(ctx, r, scanAccount, "accounts of "+day, "SELECT "+accountColumns+" FROM accounts WHERE day = ? ORDER BY owner", day)
}

// Reserved returns what a run may spend now: less while runs that it requested have some of
// it. A run that is not known has no limit.
func (r *Reader) Reserved(ctx context.Context, name task.RunName) (envelope.Budget, error) {
	scan := func(r row) (b envelope.Budget, err error) {
		err = r.Scan(&b.Tokens, &b.USDCents)
		return b, err
	}
	b, _, err := first(ctx, r.read, scan, "SELECT reserved_tokens, reserved_cents FROM runs WHERE task = ? AND attempt = ?", name.Task, name.Attempt)
	if err != nil {
		return envelope.Budget{}, fmt.Errorf("read reservation of run %d of task %d: %w", name.Attempt, name.Task, err)
	}
	return b, nil
}

// Paused returns the agents that are paused, with "" for every agent.
func (r *Reader) Paused(ctx context.Context) ([]string, error) {
	return list(ctx, r, one[string], "pauses", "SELECT agent FROM pauses ORDER BY agent")
}

// Files returns every file that is known, in order of path.
func (r *Reader) Files(ctx context.Context) ([]File, error) {
	return list(ctx, r, scanFile, "files", "SELECT "+definitions[files].names("")+" FROM files ORDER BY path")
}

// Announcements returns all announcements, by name.
func (r *Reader) Announcements(ctx context.Context) ([]task.Announcement, error) {
	return list(ctx, r, scanAnnouncement, "announcements", "SELECT name, supports, since FROM announcements ORDER BY name")
}

// maxDeadLetters is how many dead letters are read at once.
const maxDeadLetters = 1024

// DeadLetters returns the oldest lines that are still to be appended: at most so many bytes,
// but at least one line if there is one.
func (r *Reader) DeadLetters(ctx context.Context, bytes int) ([]DeadLetter, error) {
	type size struct {
		seq   int64
		bytes int
	}
	sizes, err := list(ctx, r, func(r row) (s size, err error) {
		err = r.Scan(&s.seq, &s.bytes)
		return s, err
	}, "dead letters", "SELECT seq, length(line) FROM dead_letters ORDER BY seq LIMIT ?", maxDeadLetters)
	if err != nil || len(sizes) == 0 {
		return nil, err
	}
	last := 0
	for total := sizes[0].bytes; last+1 < len(sizes) && total+sizes[last+1].bytes <= bytes; last++ {
		total += sizes[last+1].bytes
	}
	return list(ctx, r, func(r row) (d DeadLetter, err error) {
		err = r.Scan(&d.Seq, &d.Line)
		return d, err
	}, "dead letters", "SELECT seq, line FROM dead_letters WHERE seq <= ? ORDER BY seq", sizes[last].seq)
}

// A Loss is a ledger that was lost.
type Loss struct {
	Aside string // where it was moved
	At    time.Time
}

// Losses returns the lost ledgers whose lines have not all been read again.
func (r *Reader) Losses(ctx context.Context) ([]Loss, error) {
	scan := func(r row) (l Loss, err error) {
		err = r.Scan(&l.Aside, stamp{&l.At})
		return l, err
	}
	return list(ctx, r, scan, "lost ledgers", "SELECT aside, at FROM losses WHERE over IS NULL")
}

// Lost reports whether an earlier ledger could not be read, or was missing, and the lines of
// its time have not all been read again.
func (r *Reader) Lost(ctx context.Context) (bool, error) {
	losses, err := r.Losses(ctx)
	return len(losses) > 0, err
}

// CountOpen returns how many revisions are in each state but Done. A state without any is
// left out. Queued tasks may be a million: they are all but the others, which takes a fifth
// of the time of grouping them.
func (r *Reader) CountOpen(ctx context.Context) (map[task.State]int, error) {
	type count struct {
		state task.State
		n     int
	}
	counts, err := list(ctx, r, func(row row) (c count, err error) {
		err = row.Scan(&c.state, &c.n)
		return c, err
	}, "open tasks", "SELECT 'queued', count(*) FROM tasks WHERE state <> 'done' UNION ALL "+
		"SELECT state, count(*) FROM tasks WHERE state <> 'done' AND state <> 'queued' GROUP BY state")
	open := map[task.State]int{}
	for _, c := range counts {
		open[c.state] += c.n
		if c.state != task.Queued {
			open[task.Queued] -= c.n
		}
	}
	if open[task.Queued] == 0 {
		delete(open, task.Queued)
	}
	return open, err
}

// DeadLetterSeqs returns the Seqs of the dead letters up to one.
func (r *Reader) DeadLetterSeqs(ctx context.Context, upTo int64) ([]int64, error) {
	return list(ctx, r, one[int64], "dead letters", "SELECT seq FROM dead_letters WHERE seq <= ?", upTo)
}

// OpenInThread returns the tasks of a conversation that are not Done.
func (r *Reader) OpenInThread(ctx context.Context, thread string) ([]int64, error) {
	return list(ctx, r, one[int64], "open tasks of thread "+thread,
		"SELECT task FROM conversations WHERE thread = ? AND thread <> '' AND task IN (SELECT seq FROM tasks WHERE state <> 'done')", thread)
}
