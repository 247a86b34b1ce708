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
	"mailboxd/internal/core"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// The PlacedResults are result files that another program put into place.
type PlacedResults struct {
	*outbox.Base
	Completer *Completer
}

// HandleFile deals with a result file that is there before an agent ran
// (AINL-85): a valid one answers the task, one that cannot be read makes it
// wait for the operator, and none is ever overwritten. One for a task that needs
// an approval is refused. It reports whether there is nothing left to do for the
// task now.
func (pr *PlacedResults) HandleFile(ctx context.Context, row task.Task) (bool, error) {
	if !pr.Box.HasResult(row.ID) {
		return false, nil
	}
	if oversees, err := pr.Reader.Oversees(ctx, row); oversees || err != nil {
		return false, err // its own word decides, and no file that anybody may place (CAP-24)
	}
	there, info, err := pr.Box.ReadResult(row.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if runner.Passing(err) {
		return false, err // nobody knows what the file says
	}
	if err == nil {
		if _, ours, err := pr.Reader.RevisionOfResult(ctx, row, there); ours || err != nil {
			return false, pr.displaceOurs(ctx, row, err)
		}
		need, err := pr.Reader.ApprovalNeed(ctx, row, info)
		if err != nil {
			return false, err
		}
		r, valid := store.AsResult(row, there)
		switch {
		case pr.Publisher.Refuses(row, need, valid):
			return false, pr.Publisher.Refuse(ctx, row)
		case valid && pr.mayAnswer(row, r):
			return true, pr.adopt(ctx, row, r, there, need)
		}
	}
	if core.Unread(row) {
		return false, nil // it waits for release already
	}
	if row.ClaimedAt(time.Now()) {
		return false, nil // the program that has it may still be writing, or answer otherwise
	}
	settled := time.Now()
	if info != nil {
		settled = info.ModTime().Add(store.Writing)
	}
	return true, pr.waitForOperator(ctx, row, settled)
}

// displaceOurs moves the result of an earlier revision to the history, unless
// finding out whose it is failed.
func (pr *PlacedResults) displaceOurs(ctx context.Context, row task.Task, failed error) error {
	if failed != nil {
		return failed
	}
	defer pr.ResultLocks.Lock(row.ID)()
	return pr.Publisher.DisplaceLocked(ctx, row)
}

// adopt ends a task with the result that somebody else put into place, or has a
// person agree to that result first.
func (pr *PlacedResults) adopt(ctx context.Context, row task.Task, r envelope.Result, there []byte, need store.ApprovalNeed) error {
	if row.State == task.Waiting {
		return pr.adoptAnswer(ctx, row, r, there)
	}
	taken, err := pr.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, true), &core.TakeAnswer{
		Task: row.Seq, Seen: core.See(row), Result: r, Bytes: there, Review: need.After, Terms: need.Terms,
	})
	if taken {
		pr.Log(row).Info().Str("status", string(r.Status)).Msg("result placed by somebody else adopted")
	}
	return err
}

// waitForOperator holds a task behind a result file that says nothing. It
// logs that once the file hasn't changed for a while, and looks again as long as the file
// is there.
func (pr *PlacedResults) waitForOperator(ctx context.Context, row task.Task, settled time.Time) error {
	now := time.Now()
	logged := row.State == task.Held && slices.Contains(row.Reasons, task.ResultInvalid) && row.Until.IsZero()
	if logged {
		pr.Timers.After(row.Seq, store.SettlePause)
		return nil
	}
	if row.State == task.Waiting && now.Before(settled) {
		pr.Timers.Set(row.Seq, settled) // its agent may still be writing
		return nil
	}
	tell, until := !now.Before(settled), settled
	if tell {
		until = time.Time{}
	}
	var data map[string]any
	if tell {
		data = map[string]any{"file": store.ResultFile(row), "faults": pr.faultsOf(row)}
	}
	refused, err := pr.Writer.DecideIfCurrent(ctx, store.TaskLoader(row.Seq, true, false), &core.RefuseAnswer{Task: row.Seq, Seen: core.See(row), Until: until, Data: data})
	if refused && tell {
		pr.Log(row).Warn().Str("file", store.ResultFile(row)).Msg("result file is no result for its task; held until it is corrected or removed")
	}
	return err
}

// EndWaiting ends the run of a task that waits, and does what comes of that.
// there are the bytes of the answer, where these are not ours to say.
func (pr *PlacedResults) EndWaiting(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, e task.Event, there []byte) error {
	t, err := pr.Completer.Prepare(ctx, row, terms, o)
	if err != nil {
		return err
	}
	t.Event, t.bytes = e, there
	if err := pr.Completer.commitIfUnmoved(ctx, t); err != nil || !t.moved {
		return err
	}
	pr.Log(row).Info().Str("status", string(t.Next.Status)).Str("reason", string(t.Next.Kind)).Msg("task ended while it waited for its agent")
	return nil
}

// mostFaults bounds how many faults of a result file are recorded.
const mostFaults = 20

// faultsOf says field by field why a result file that somebody placed is not the
// answer to its task (AINL-85).
func (pr *PlacedResults) faultsOf(row task.Task) []string {
	there, _, err := pr.Box.ReadResult(row.ID)
	if err != nil {
		return []string{err.Error()}
	}
	r, findings := envelope.DecodeResult(there)
	wrong := findings.Refusals()
	if r.TaskID != "" && r.TaskID != row.ID {
		wrong = append(wrong, envelope.Finding{Field: "task_id", Message: fmt.Sprintf("is %q, not %q", r.TaskID, row.ID)})
	}
	if r.AgentID != "" && !pr.mayAnswer(row, r) {
		wrong = append(wrong, envelope.Finding{Field: "agent_id", Message: fmt.Sprintf("is %q, and not the agent that fetches the task, %q", r.AgentID, row.Agent)})
	}
	faults := make([]string, 0, len(wrong))
	for _, f := range wrong[:min(len(wrong), mostFaults)] {
		faults = append(faults, f.String())
	}
	return faults
}
