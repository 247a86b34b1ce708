package executor

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// addCalls lets a run ask people about its calls of tools, and records those that it made without
// asking, and those of its tool broker.
func (p *Preparer) addCalls(ctx context.Context, row task.Task, j *task.Job) {
	j.Used = func(kind task.Kind, use task.ToolUse) error {
		used := &core.RecordToolUse{Task: row.Seq, Attempt: row.Attempt, Kind: kind, Use: use}
		_, err := p.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, false), used)
		return err
	}
	terms := j.Terms
	j.Ask = func(c task.Call, isMade bool) (task.CallDecision, error) {
		if !isMade {
			return p.askCall(ctx, row, terms, c)
		}
		made := &core.RecordUnasked{Task: row.Seq, Attempt: row.Attempt, Call: c}
		_, err := p.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, false), made)
		return task.CallDecision{}, err
	}
}

// askCall asks a person about a call, unless that was done, and returns what was decided. A decision
// is durable before the agent has it.
func (p *Preparer) askCall(ctx context.Context, row task.Task, terms task.Terms, c task.Call) (decision task.CallDecision, err error) {
	content, digest, err := core.CallContent(row, c)
	if err != nil {
		return decision, err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			p.FaultLog.Report(store.Judging, row, err)
		}
	}()
	asked, found, err := p.Reader.CallQuestion(ctx, row, digest)
	if err != nil {
		return decision, err
	}
	var next core.Command
	switch {
	case !found && p.Agents.WhyNobody != nil && p.Agents.WhyNobody(row, terms.Approver) != "":
		return task.CallDecision{Answer: task.RejectCall, Reason: p.Agents.WhyNobody(row, terms.Approver)}, nil
	case !found:
		next = &core.AskCall{Task: row.Seq, Attempt: row.Attempt, Digest: digest, Content: content, Terms: terms}
	case asked.Decision == task.Undecided && core.IsPast(asked.Expires, time.Now()):
		next = &core.ExpireCall{Task: row.Seq, Digest: digest}
	default:
		return core.CallDecisionOf(asked, terms, time.Now()), nil
	}
	_, err = p.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, false), next)
	return decision, err
}
