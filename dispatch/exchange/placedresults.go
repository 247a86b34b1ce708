package exchange

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// PlacedResults handles result files that another program put into place.
type PlacedResults struct {
	*outbox.Base
	Completer *Completer
}

// HandleFile handles a result file that exists before an agent ran (AINL-85). A valid file
// answers the task; an unreadable file holds the task for the operator; no file is ever
// overwritten. A file is refused when its task needs an approval. HandleFile reports whether no
// work is left for the task now.
func (pr *PlacedResults) HandleFile(ctx context.Context, row task.Task) (bool, error) {
	if !pr.Box.HasResult(row.ID) {
		return false, nil
	}
	if oversees, err := pr.Reader.Oversees(ctx, row); oversees || err != nil {
		return false, err // only its own run decides: any program can place a file (CAP-24)
	}
	content, info, err := pr.Box.ReadResult(row.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if runner.Passing(err) {
		return false, err // the content is unknown
	}
	if err == nil {
		if _, found, err := pr.Reader.RevisionOfResult(ctx, row, content); found || err != nil {
			return false, pr.displaceOurs(ctx, row, err)
		}
		need, err := pr.Reader.ApprovalNeed(ctx, row, info)
		if err != nil {
			return false, err
		}
		r, valid := store.AsResult(row, content)
		switch {
		case pr.Publisher.Refuses(row, need, valid):
			return false, pr.Publisher.Refuse(ctx, row)
		case valid && pr.mayAnswer(row, r):
			return true, pr.adopt(ctx, row, r, content, need)
		}
	}
	if core.Unread(row) {
		return false, nil // it waits for Release already
	}
	if row.ClaimedAt(time.Now()) {
		return false, nil // the claimer may still be writing, or submit the answer
	}
	settled := time.Now()
	if info != nil {
		settled = info.ModTime().Add(store.Writing)
	}
	return true, pr.waitForOperator(ctx, row, settled)
}

// displaceOurs moves the result of an earlier revision to the history. It only returns an error
// of the check before it.
func (pr *PlacedResults) displaceOurs(ctx context.Context, row task.Task, failed error) error {
	if failed != nil {
		return failed
	}
	defer pr.ResultLocks.Lock(row.ID)()
	return pr.Publisher.DisplaceLocked(ctx, row)
}

// adopt ends a task with the result that another program put into place, or first asks a person
// to approve the result.
func (pr *PlacedResults) adopt(ctx context.Context, row task.Task, r envelope.Result, content []byte, need store.ApprovalNeed) error {
	if row.State == task.Waiting {
		return pr.adoptAnswer(ctx, row, r, content)
	}
	taken, err := pr.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, true), &core.TakeAnswer{
		Task: row.Seq, Seen: core.See(row), Result: r, Bytes: content, Review: need.After, Terms: need.Terms,
	})
	if taken {
		pr.Log(row).Info().Str("status", string(r.Status)).Msg("result placed by somebody else adopted")
	}
	return err
}

// waitForOperator holds a task behind an invalid result file. It logs this once the file is
// unchanged for a while, and checks again as long as the file exists.
func (pr *PlacedResults) waitForOperator(ctx context.Context, row task.Task, settled time.Time) error {
	now := time.Now()
	logged := row.State == task.Held && slices.Contains(row.Reasons, task.ResultInvalid) && row.Until.IsZero()
	if logged {
		pr.Timers.After(row.Seq, store.SettlePause)
		return nil
	}
	if row.State == task.Waiting && now.Before(settled) {
		pr.LookAt(row, settled) // its agent may still be writing
		return nil
	}
	settledNow, until := !now.Before(settled), settled
	if settledNow {
		until = time.Time{}
	}
	var data map[string]any
	if settledNow {
		data = map[string]any{"file": store.ResultFile(row), "faults": pr.faultsOf(row)}
	}
	refused, err := pr.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, false), &core.RefuseAnswer{Task: row.Seq, Seen: core.See(row), Until: until, Data: data})
	if refused && settledNow {
		pr.Log(row).Warn().Str("file", store.ResultFile(row)).Msg("result file is no result for its task; held until it is corrected or removed")
	}
	return err
}

// EndWaiting ends the run of a waiting task, and takes the next steps. placed is the content of
// a placed result file; nil: the result is encoded from the outcome.
func (pr *PlacedResults) EndWaiting(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, e task.Event, placed []byte) error {
	t, err := pr.Completer.Prepare(ctx, row, terms, o)
	if err != nil {
		return err
	}
	t.Event, t.bytes = e, placed
	if err := pr.Completer.commitIfUnmoved(ctx, t); err != nil || !t.moved {
		return err
	}
	pr.Log(row).Info().Str("status", string(t.Next.Status)).Str("reason", string(t.Next.Kind)).Msg("task ended while it waited for its agent")
	return nil
}

// maxFaults limits the recorded faults of a result file.
const maxFaults = 20

// faultsOf describes, field by field, why a placed result file is not the answer to its task
// (AINL-85).
func (pr *PlacedResults) faultsOf(row task.Task) []string {
	content, _, err := pr.Box.ReadResult(row.ID)
	if err != nil {
		return []string{err.Error()}
	}
	r, findings := envelope.DecodeResult(content)
	problems := findings.Refusals()
	if r.TaskID != "" && r.TaskID != row.ID {
		problems = append(problems, envelope.Finding{Field: "task_id", Message: fmt.Sprintf("is %q, not %q", r.TaskID, row.ID)})
	}
	if r.AgentID != "" && !pr.mayAnswer(row, r) {
		problems = append(problems, envelope.Finding{Field: "agent_id", Message: fmt.Sprintf("is %q, and not the agent that fetches the task, %q", r.AgentID, row.Agent)})
	}
	faults := make([]string, 0, len(problems))
	for _, f := range problems[:min(len(problems), maxFaults)] {
		faults = append(faults, f.String())
	}
	return faults
}
