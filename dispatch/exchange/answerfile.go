package exchange

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// mayAnswer reports whether a result file may answer a task. An agent that fetches its tasks
// answers with the file, so the file must name the agent; elsewhere a person answers in the
// agent's place.
func (pr *PlacedResults) mayAnswer(row task.Task, r envelope.Result) bool {
	fetched := row.State == task.Waiting || pr.Agents.Inbox(row.Agent).File != ""
	return !fetched || r.AgentID == row.Agent
}

// adoptAnswer ends a waiting task with the result file that its agent, or a person for it, put
// into place (AINL-85). The file is the result as it stands, even if it breaks a promise; it is
// not rewritten. The event result.adopted records the objections that a submission of the same
// answer would have met, such as a broken output contract or a high cost. When the answer needs
// an approval, the task goes into review: the ledger keeps the answer, the file is removed, and
// it is put again unchanged after the approval.
func (pr *PlacedResults) adoptAnswer(ctx context.Context, row task.Task, r envelope.Result, content []byte) error {
	run, err := pr.Reader.RunOf(ctx, row)
	if err != nil {
		return err
	}
	job, err := pr.Reader.JobOf(ctx, row, run)
	if err != nil {
		return err
	}
	judged, judgeErr := pr.Meters.JudgeAnswer(ctx, row, run, job, content)
	now := time.Now()
	o := task.Outcome{Result: r, Exit: task.Exit{Started: run.Started, Finished: now, Wall: now.Sub(run.Intent)}}
	if o.Exit.Started.IsZero() {
		o.Exit.Started = run.Intent // the task was done, claimed or not
	}
	data := map[string]any{"agent_id": r.AgentID, "status": r.Status}
	if text := objections(r, judged.Result, judgeErr); text != "" {
		data["warnings"] = text
	}
	overseer, err := pr.Reader.OverseerOf(ctx, row)
	if err != nil {
		return err
	}
	if needsApproval(run.Terms, o) || overseer != "" {
		data["note"] = "it has to be approved before it is shown"
	}
	fault.Point("inbox-answered")
	pr.Log(row).Info().Str("status", string(r.Status)).Msg("result file of the agent taken for its answer")
	return pr.EndWaiting(ctx, row, run.Terms, o, store.Event(row, task.KindResultAdopted, data), content)
}

// objections describes what is wrong with a result as it was placed.
func objections(r, judged envelope.Result, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case judged.Status != r.Status:
		return judged.Error.Message
	case judged.Review.Required && !r.Review.Required:
		return judged.Review.Reason
	}
	return ""
}
