package exchange

import (
	"context"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// mayAnswer reports whether a result file is by somebody who may answer a task.
// Of an agent that fetches its tasks the file is its way to answer, so it has to
// be signed with its id; elsewhere a person answers in an agent's place.
func (pr *PlacedResults) mayAnswer(row task.Task, r envelope.Result) bool {
	fetched := row.State == task.Waiting || pr.Agents.Inbox(row.Agent).File != ""
	return !fetched || r.AgentID == row.Agent
}

// adoptAnswer ends a task that waits with the result file that its agent, or a
// person for it, put into place (AINL-85). Nobody rewrites that file: it is the
// result, as it stands there, whatever was promised. What would have been said of
// the same answer had it been submitted, such as that it breaks the output
// contract or costs too much, is in the event result.adopted. Where the answer
// needs an approval the task goes into review: the ledger has the answer, the file
// is taken away, and it is put again as it was once somebody agreed.
func (pr *PlacedResults) adoptAnswer(ctx context.Context, row task.Task, r envelope.Result, there []byte) error {
	run, err := pr.Reader.RunOf(ctx, row)
	if err != nil {
		return err
	}
	job, err := pr.Reader.JobOf(ctx, row, run)
	if err != nil {
		return err
	}
	judged, doubt := pr.Meters.JudgeAnswer(ctx, row, run, job, there)
	now := time.Now()
	o := task.Outcome{Result: r, Exit: task.Exit{Started: run.Started, Finished: now, Wall: now.Sub(run.Intent)}}
	if o.Exit.Started.IsZero() {
		o.Exit.Started = run.Intent // somebody has done it, claimed or not
	}
	data := map[string]any{"agent_id": r.AgentID, "status": r.Status}
	if said := doubts(r, judged.Result, doubt); said != "" {
		data["doubts"] = said
	}
	if needsApproval(run.Terms, o) || pr.Agents.Protocol.Overseer(row.Agent) != "" {
		data["note"] = "it has to be approved before it is shown"
	}
	fault.Point("inbox-answered")
	pr.Log(row).Info().Str("status", string(r.Status)).Msg("result file of the agent taken for its answer")
	return pr.EndWaiting(ctx, row, run.Terms, o, store.Event(row, task.KindResultAdopted, data), there)
}

// doubts is what there is to say against a result as it was placed.
func doubts(r, judged envelope.Result, err error) string {
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
