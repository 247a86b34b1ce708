package store

import (
	"context"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// Judge lets policy decide on a task. The findings are those of its decoding; one that refuses
// the task decides alone.
func (rd *Reader) Judge(t envelope.Task, findings envelope.Findings, now time.Time) task.Verdict {
	if findings.Refused() {
		return task.Verdict{Findings: findings}
	}
	t = artifactReader{rd}.raise(context.Background(), t)
	if t.Agent == envelope.Everybody && rd.Agents.Candidates != nil {
		return judgeAfter(rd, t, Chooser{Reader: rd}.judgeUnbound(t, findings, now), now)
	}
	return judgeAfter(rd, t, Chooser{Reader: rd}.judgeFit(t, rd.judgeFor(t, findings, now)), now)
}

// judgeFor is Judge for a task and the agent that it names.
func (rd *Reader) judgeFor(t envelope.Task, findings envelope.Findings, now time.Time) task.Verdict {
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
	if until, holds := rd.Pauses.Limits.Holds(t.Agent, t.ID, now); holds {
		v = core.HeldUntil(v, task.ProviderLimit, until)
	}
	return v
}

// NearMisses returns the near misses of a request, as the mode of their control says.
func (rd *Reader) NearMisses(t envelope.Task) envelope.Findings {
	return rd.Agents.Mode(envelope.ControlNearMisses).Apply(t.NearMisses)
}

// Cleared reports whether a task may start: policy admits it, and nothing holds it except an
// approval that was given for this content.
func (rd *Reader) Cleared(ctx context.Context, row task.Task, v task.Verdict) (bool, error) {
	if !v.Admit || !core.WantsApproval(v.Hold) {
		return v.Admit && len(v.Hold) == 0, nil
	}
	last, asked, err := rd.Ledger.Consent(ctx, row.Seq, envelope.ApprovalPre, "")
	if err != nil || !asked || len(v.Hold) > 1 {
		return false, err
	}
	rd.verify(row, &last)
	began := false
	if row.Attempt > 0 {
		began, err = rd.Ran(ctx, row)
	}
	return core.Covers(&last, v, began, time.Now()), err
}

// verify verifies the proof of an approval that was given, and sets its Level and Unproven.
func (s *Shared) verify(row task.Task, c *task.Consent) {
	if s.Agents.Prove == nil || c.Decision != task.Approved {
		return
	}
	level, err := s.Agents.Prove(row, *c)
	if c.Proof.Level = level; err != nil {
		c.Proof.Unproven = err.Error()
	}
}

// Prove verifies the proof of a decision that a person makes now about a task, and returns what
// it shows. why says why the decision doesn't count; "" if it does.
func (rd *Reader) Prove(ctx context.Context, row task.Task, to task.Decision, p core.Person) (level task.ProofLevel, why string, err error) {
	c, err := rd.Asked(ctx, row, p.Digest)
	if err != nil || c.Seq == 0 || rd.Agents.Prove == nil || len(p.Names) == 0 {
		return task.ProofNone, "", err
	}
	c.Decision, c.Decider, c.Proof, c.Expires = to, p.Name(c.Approver), p.Proof, p.Proof.Expires
	if level, err = rd.Agents.Prove(row, c); err != nil {
		return task.ProofNone, err.Error(), nil
	}
	return level, "", nil
}

// stageOf returns the stage of the approval that a task waits for.
func stageOf(row task.Task) envelope.Approval {
	if row.State == task.Review {
		return envelope.ApprovalPost
	}
	return envelope.ApprovalPre
}

// About gathers the subject of a decision about a task.
func (rd *Reader) About(ctx context.Context, row task.Task) (q DecisionSubject, err error) {
	_, t, findings, err := rd.Load(ctx, row.Seq)
	if err != nil {
		return q, err
	}
	q.Task = t
	if row.State == task.Running {
		q.Proof, err = rd.reviewProof(ctx, row, t)
		return q, err
	}
	if row.State == task.Review {
		if q.Proof, err = rd.reviewProof(ctx, row, t); err != nil {
			return q, err
		}
		q.Result, err = rd.Ledger.Result(ctx, row.Seq)
		return q, err
	}
	q.Verdict = rd.Judge(t, findings, time.Now())
	q.Proof = q.Verdict.Proof
	q.Began, err = rd.Ran(ctx, row)
	return q, err
}

// reviewProof returns the least proof that the approval of an answer in review needs: the
// stricter of the terms of its runs and the policy now. A task that would not be admitted now,
// because its deadline is past or a file is gone, needs it too.
func (rd *Reader) reviewProof(ctx context.Context, row task.Task, t envelope.Task) (task.ProofLevel, error) {
	level := rd.Agents.Judge(t, time.Now()).Proof
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	for _, r := range runs {
		level = max(level, r.Terms.Proof)
	}
	return level, err
}

// A DecisionSubject is the subject of a decision, with the facts that carry it out.
type DecisionSubject struct {
	Task    envelope.Task
	Verdict task.Verdict    // on a start now
	Began   bool            // an attempt was started
	Result  []byte          // the answer in review
	Proof   task.ProofLevel // the least proof that an approval needs
}

// Asked returns the question that an approver is asked about a task; zero for none. Of a running
// task, it is that with a digest, or else the oldest.
func (rd *Reader) Asked(ctx context.Context, row task.Task, digest string) (task.Consent, error) {
	if row.State == task.Running {
		return rd.askedCall(ctx, row, digest)
	}
	c, asked, err := rd.Ledger.Consent(ctx, row.Seq, stageOf(row), "")
	if err != nil || !asked || c.Decision != task.Undecided {
		return task.Consent{}, err
	}
	return c, nil
}

// askedCall returns the open question about a call with a digest, or else the oldest; zero for none.
func (rd *Reader) askedCall(ctx context.Context, row task.Task, digest string) (task.Consent, error) {
	list, err := rd.Ledger.Approvals(ctx, row.Seq)
	list = slices.DeleteFunc(list, func(c task.Consent) bool { return c.Stage != envelope.ApprovalTool || c.Decision != task.Undecided })
	if err != nil || len(list) == 0 {
		return task.Consent{}, err
	}
	return list[max(0, slices.IndexFunc(list, func(c task.Consent) bool { return c.Digest == digest }))], nil
}

// CallQuestion returns the question about a call with a digest, verified, and whether there is one.
func (rd *Reader) CallQuestion(ctx context.Context, row task.Task, digest string) (task.Consent, bool, error) {
	c, found, err := rd.Ledger.Consent(ctx, row.Seq, envelope.ApprovalTool, digest)
	rd.verify(row, &c)
	return c, found, err
}

// Undecided returns the revision of a task that waits for an approval.
func (rd *Reader) Undecided(ctx context.Context, id envelope.ID) (task.Task, error) {
	revisions, err := rd.Revisions(ctx, id)
	if err != nil {
		return task.Task{}, err
	}
	for _, row := range slices.Backward(revisions) {
		if row.State == task.Review || row.State == task.Held && core.WantsApproval(row.Reasons) {
			return row, nil
		}
		if row.State != task.Running {
			continue
		}
		if asked, err := rd.askedCall(ctx, row, ""); err != nil || asked.Digest != "" {
			return row, err
		}
	}
	return task.Task{}, core.StateErrorOf(revisions[len(revisions)-1])
}

// Apply moves a task that does not run to the state that a verdict requires, and asks for the
// approval that the verdict requires. It does nothing when the task was moved, also when it was
// moved before the caller read it: the code that ends a run decides about running and ended
// tasks.
func (rd *Reader) Apply(ctx context.Context, row task.Task, t envelope.Task, v task.Verdict) error {
	if !core.Startable(row.State) {
		return nil
	}
	if same, err := rd.holdsAlready(ctx, row, v); same || err != nil {
		return err
	}
	began, err := rd.Ran(ctx, row)
	if err != nil {
		return err
	}
	if why := (Chooser{Reader: rd}).whyUnbind(row, t, v); why != "" && !began {
		_, err = rd.Writer.DecideIfCurrent(ctx, TaskLoader(row.Seq, false, true), &core.Unbind{Task: row.Seq, Seen: core.See(row), Why: why})
		return err
	}
	load := TaskLoader(row.Seq, began, core.WantsApproval(v.Hold) || core.WantsApproval(row.Reasons))
	_, err = rd.Writer.DecideIfCurrent(ctx, load, &core.Judge{Task: row.Seq, Seen: core.See(row), Request: t, Verdict: v})
	return err
}

// holdsAlready reports whether a task is held as a verdict says, without an approval.
func (rd *Reader) holdsAlready(ctx context.Context, row task.Task, v task.Verdict) (bool, error) {
	if row.State != task.Held || !v.Admit || core.WantsApproval(v.Hold) || !slices.Equal(v.Hold, row.Reasons) || !v.Until.Equal(row.Until) {
		return false, nil
	}
	if len(v.Waits) == 0 {
		return true, nil
	}
	waits, err := rd.Ledger.Waits(ctx, row.Seq) // a build before this table did not write them
	return slices.Equal(waits, v.Waits), err
}

// ReplyDeadline returns when a participant has to reply to a message of now; zero: never.
func (rd *Reader) ReplyDeadline(now time.Time) time.Time {
	if rd.Agents.Protocol.ReplyTimeout <= 0 {
		return time.Time{}
	}
	return now.Add(rd.Agents.Protocol.ReplyTimeout)
}

// ApprovalNeed finds the approvals that a task without a current run lacks. None is needed for
// a file that is older than the task, when the task was read again after the loss of the
// ledger: the file may be the result of an approved run.
func (rd *Reader) ApprovalNeed(ctx context.Context, row task.Task, file fs.FileInfo) (need ApprovalNeed, err error) {
	if slices.Contains(row.Reasons, task.Recovered) && changedAt(file).Before(row.Received) {
		return need, nil
	}
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	if err != nil {
		return need, err
	}
	overseer, err := rd.OverseerOf(ctx, row)
	if err != nil {
		return need, err
	}
	need.Overseen = overseer != ""
	need.After = need.Overseen
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
	last, asked, err := rd.Ledger.Consent(ctx, row.Seq, stageOf(row), "")
	rd.verify(row, &last)
	open := asked && last.Decision == task.Undecided
	given := asked && core.Covers(&last, v, core.Unread(row) || slices.ContainsFunc(runs, mayHaveBegun), time.Now())
	need.Before = core.WantsApproval(row.Reasons) || open || core.WantsApproval(v.Hold) && !given
	return need, err
}

// An ApprovalNeed says which approvals a task lacks. The zero value needs none.
type ApprovalNeed struct {
	Before   bool       // of its start
	After    bool       // of its answer
	Overseen bool       // by an overseer
	Terms    task.Terms // the terms under which a person is asked about the answer
}

// NeededApproval reports whether the answer of a done task needed an approval, or whether its
// start needed one that was not given. A file that another program placed does not count as its
// result then.
func (rd *Reader) NeededApproval(ctx context.Context, row task.Task) (bool, error) {
	if overseer, err := rd.OverseerOf(ctx, row); err != nil || overseer != "" {
		return true, err
	}
	asked, err := rd.Ledger.Approvals(ctx, row.Seq)
	if err != nil {
		return false, err
	}
	asked = slices.DeleteFunc(asked, func(c task.Consent) bool { return c.Stage == envelope.ApprovalTool })
	if n := len(asked); n > 0 && (asked[n-1].Stage != envelope.ApprovalPre || asked[n-1].Decision != task.Approved) {
		return true, nil
	}
	runs, err := rd.Ledger.Runs(ctx, row.Seq)
	return slices.ContainsFunc(runs, func(r task.Run) bool { return core.NeedsReview(r.Terms) }), err
}

// mayHaveBegun reports whether an attempt was made, or may have been made.
func mayHaveBegun(r task.Run) bool { return !r.Started.IsZero() || r.Cause == task.CauseLost }

// changedAt returns the time of the last change of a file, its name or its attributes. Programs
// can't set this time.
func changedAt(file fs.FileInfo) time.Time {
	stat, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return file.ModTime()
	}
	return time.Unix(stat.Ctim.Unix())
}
