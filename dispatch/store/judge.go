package store

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// Judge lets policy decide on what was decoded without a refusal.
func (rd *Reader) Judge(t envelope.Task, findings envelope.Findings, now time.Time) task.Verdict {
	if findings.Refused() {
		return task.Verdict{Findings: findings}
	}
	refs := rd.checkRefs(t)
	findings = append(findings, refs...)
	if refs.Refused() {
		return task.Verdict{Findings: findings, Terms: task.Terms{Levels: envelope.Levels{envelope.ControlRefs: envelope.LevelDaemon}}}
	}
	if calls := rd.checkCallback(t); calls.Refused() {
		return task.Verdict{Findings: append(findings, calls...)}
	}
	v := rd.Agents.Judge(t, now)
	v.Findings = append(findings, v.Findings...)
	if rd.Pauses.Has(t.Agent) {
		v = core.Held(v, task.Paused)
	}
	return v
}

// Shapeless reports whether the line itself is at fault, not what it asks for.
func Shapeless(kind envelope.Kind) bool {
	switch kind {
	case envelope.InvalidJSON, envelope.InvalidEnvelope, envelope.UnsupportedVersion, envelope.SecurityViolation:
		return true
	}
	return false
}

// Cleared reports whether a task may start: it is admitted, and nothing holds it
// but an approval that was given for exactly this.
func (rd *Reader) Cleared(ctx context.Context, row task.Task, v task.Verdict) (bool, error) {
	if !v.Admit || !WantsApproval(v.Hold) {
		return v.Admit && len(v.Hold) == 0, nil
	}
	last, asked, err := rd.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPre)
	if err != nil || !asked || len(v.Hold) > 1 {
		return false, err
	}
	began := false
	if row.Attempt > 0 {
		began, err = rd.Ran(ctx, row)
	}
	return core.Covers(&last, v, began, time.Now()), err
}

// WantsApproval reports whether a person has to agree before a task starts.
func WantsApproval(reasons []task.Reason) bool { return slices.Contains(reasons, task.Approval) }

// stageOf is what an approval of a task that waits for one would be of.
func stageOf(row task.Task) envelope.Approval {
	if row.State == task.Review {
		return envelope.ApprovalPost
	}
	return envelope.ApprovalPre
}

// About gathers what a person decides about.
func (rd *Reader) About(ctx context.Context, row task.Task) (q DecisionSubject, err error) {
	_, t, findings, err := rd.Load(ctx, row.Seq)
	if err != nil {
		return q, err
	}
	q.Task = t
	if row.State == task.Review {
		q.Result, err = rd.Ledger.Result(ctx, row.Seq)
		return q, err
	}
	q.Verdict = rd.Judge(t, findings, time.Now())
	q.Began, err = rd.Ran(ctx, row)
	return q, err
}

// A DecisionSubject is what a decision is about, and what is needed to carry it out.
type DecisionSubject struct {
	Task    envelope.Task
	Verdict task.Verdict // on a start now
	Began   bool         // an attempt was started
	Result  []byte       // the answer in review
}

// DigestAsked names what an approver is asked about a task; "" for nothing.
func (rd *Reader) DigestAsked(ctx context.Context, row task.Task) (string, error) {
	c, asked, err := rd.Ledger.Consent(ctx, row.Seq, stageOf(row))
	if err != nil || !asked || c.Decision != task.Undecided {
		return "", err
	}
	return c.Digest, nil
}

// Undecided returns the revision of a task that waits for a person.
func (rd *Reader) Undecided(ctx context.Context, id envelope.ID) (task.Task, error) {
	revisions, err := rd.Revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	for _, row := range slices.Backward(revisions) {
		if row.State == task.Review || row.State == task.Held && WantsApproval(row.Reasons) {
			return row, nil
		}
	}
	return task.Task{}, core.StateErrorOf(revisions[len(revisions)-1])
}

// Apply moves a task that does not run to where a verdict wants it, and a
// person. It does nothing when somebody moved the task meanwhile, also before it
// was read: what runs, or has run, is for who ends that.
func (rd *Reader) Apply(ctx context.Context, row task.Task, t envelope.Task, v task.Verdict) error {
	if !core.Startable(row.State) {
		return nil
	}
	if row.State == task.Held && v.Admit && !WantsApproval(v.Hold) && slices.Equal(v.Hold, row.Reasons) && v.Until.Equal(row.Until) {
		rd.Timers.Set(row.Seq, row.Until)
		return nil
	}
	began, err := rd.Ran(ctx, row)
	if err != nil {
		return err
	}
	load := Loads(row.Seq, began, WantsApproval(v.Hold) || WantsApproval(row.Reasons))
	_, err = rd.Writer.DecideIfCurrent(ctx, load, &core.Judge{Task: row.Seq, Seen: core.See(row), Request: t, Verdict: v})
	return err
}

// JudgeLineage judges again, by its parents, a task that waited for an earlier
// revision to end, or is to be run again.
func (rd *Reader) JudgeLineage(ctx context.Context, row task.Task, v task.Verdict) (task.Verdict, error) {
	if row.Parent == 0 || !v.Admit {
		return v, nil
	}
	parent, err := rd.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return v, err
	}
	children, err := rd.Ledger.ChildrenBefore(ctx, row.Parent, row.Seq)
	if err != nil {
		return v, err
	}
	lineage, err := rd.Lineage(func(seq int64) (task.Task, bool, error) {
		above, err := rd.Ledger.Task(ctx, seq)
		return above, err == nil, err
	}, parent, children)
	return lineage.Admit(v, row.Agent, rd.Agents.Mode(envelope.ControlLineage)), err
}

// Lineage gathers the tasks above one that the run of a parent asks for.
func (rd *Reader) Lineage(find func(seq int64) (task.Task, bool, error), parent task.Task, children int) (core.Lineage, error) {
	l := core.Lineage{Above: []task.Task{parent}, Children: children, MaxDepth: rd.Opts.Depth, MaxChildren: rd.Opts.Children}
	for seq := parent.Parent; seq != 0; {
		above, found, err := find(seq)
		if err != nil || !found {
			return l, err
		}
		l.Above, seq = append(l.Above, above), above.Parent
	}
	return l, nil
}

// ParentOf returns the task that an agent works on, or did when the line may
// have been written: the one that is wanted, or else the one that was begun
// last, of those that it works on now if there is any. A task that it fetches it
// works on from when that is claimed.
func (rd *Reader) ParentOf(tx *Transaction, agent string, wanted envelope.ID) (parent task.Task, found bool, err error) {
	var running, over []task.Task
	sort := func(it schedule.Item, began bool) error {
		row, known, err := tx.Task(it.Seq)
		switch {
		case err != nil || !known:
			return err
		case row.State == task.Running && began: // one that has its intent alone asks for nothing
			running = append(running, row)
		case began:
			over = append(over, row)
		}
		return nil
	}
	for _, r := range rd.Runs.Find(func(it schedule.Item) bool { return it.Agent == agent }) {
		err = errors.Join(err, sort(r.Item, r.Began.Load()))
	}
	for _, it := range rd.RecentRuns.of(agent) { // after the others: a run is first among these, then not among those
		err = errors.Join(err, sort(it, true))
	}
	if rd.Agents.Inbox(agent).File != "" {
		claimed, failed := tx.Claimed(agent, time.Now())
		running, err = append(running, claimed...), errors.Join(err, failed)
	}
	if err != nil {
		return task.Task{}, false, err
	}
	all := slices.Concat(running, over)
	if at := slices.IndexFunc(all, func(row task.Task) bool { return row.ID == wanted }); at >= 0 {
		return all[at], true, nil
	}
	if len(running) > 0 {
		all = running
	}
	return lastBegun(tx, all)
}

// lastBegun returns the task of which a run was begun last, if there is any.
func lastBegun(tx *Transaction, rows []task.Task) (last task.Task, found bool, err error) {
	var latest task.Run
	for _, row := range rows {
		run, _, err := tx.LastRun(row.Seq)
		if err != nil {
			return task.Task{}, false, err
		}
		if !found || run.Intent.After(latest.Intent) {
			last, latest, found = row, run, true
		}
	}
	return last, found, nil
}

// ReplyDeadline returns until when a participant has to reply to a message of now; zero is
// without end.
func (rd *Reader) ReplyDeadline(now time.Time) time.Time {
	if rd.Agents.Protocol.ReplyTimeout <= 0 {
		return time.Time{}
	}
	return now.Add(rd.Agents.Protocol.ReplyTimeout)
}

// ApprovalNeed finds out which approvals a task lacks that has no run now. A file
// that was there before the task was read again after the loss of the ledger
// needs none: it may be the result of a run that was approved.
func (rd *Reader) ApprovalNeed(ctx context.Context, row task.Task, file fs.FileInfo) (need ApprovalNeed, err error) {
	if slices.Contains(row.Reasons, task.Recovered) && changedAt(file).Before(row.Received) {
		return need, nil
	}
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	if err != nil {
		return need, err
	}
	need.After = rd.Agents.Protocol.Overseer(row.Agent) != ""
	for _, r := range runs {
		if core.NeedsReview(r.Terms) && (row.State == task.Waiting || core.Unread(row) || mayHaveBegun(r)) {
			need.After, need.Terms = true, r.Terms
		}
	}
	if row.State == task.Waiting {
		return need, nil
	}
	_, t, findings, err := rd.Load(ctx, row.Seq)
	if err != nil {
		return need, err
	}
	v := rd.Judge(t, findings, time.Now())
	if core.NeedsReview(v.Terms) {
		need.After, need.Terms = true, v.Terms
	}
	last, asked, err := rd.Ledger.Consent(ctx, row.Seq, stageOf(row))
	open := asked && last.Decision == task.Undecided
	given := asked && core.Covers(&last, v, core.Unread(row) || slices.ContainsFunc(runs, mayHaveBegun), time.Now())
	need.Before = WantsApproval(row.Reasons) || open || WantsApproval(v.Hold) && !given
	return need, err
}

// An ApprovalNeed says which approvals a task lacks. The zero value needs none.
type ApprovalNeed struct {
	Before bool       // of its start
	After  bool       // of its answer
	Terms  task.Terms // under which a person is asked about the answer
}

// NeededApproval reports whether the answer of a task that is done needed an
// approval, or its start needed one and nobody gave it. No file that somebody
// else placed may then stand for its result.
func (rd *Reader) NeededApproval(ctx context.Context, row task.Task) (bool, error) {
	if rd.Agents.Protocol.Overseer(row.Agent) != "" {
		return true, nil
	}
	asked, err := rd.Ledger.Approvals(ctx, row.Seq)
	if err != nil {
		return false, err
	}
	if n := len(asked); n > 0 && (asked[n-1].Stage != envelope.ApprovalPre || asked[n-1].Decision != task.Approved) {
		return true, nil
	}
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	return slices.ContainsFunc(runs, func(r task.Run) bool { return core.NeedsReview(r.Terms) }), err
}

// mayHaveBegun reports whether an attempt was, or may have been, made.
func mayHaveBegun(r task.Run) bool { return !r.Started.IsZero() || r.Cause == task.CauseLost }

// changedAt is when a file was changed last, its name and its attributes
// included: nobody can set that time.
func changedAt(file fs.FileInfo) time.Time {
	stat, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return file.ModTime()
	}
	return time.Unix(stat.Ctim.Unix())
}
