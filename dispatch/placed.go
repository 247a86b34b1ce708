package dispatch

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// The placedResults are result files that another program put into place.
type placedResults struct {
	*base
	completion *completion
}

// foreign deals with a result file that is there before an agent ran
// (AINL-85): a valid one answers the task, one that cannot be read makes it
// wait for the operator, and none is ever overwritten. One for a task that needs
// an approval is refused. It reports whether there is nothing left to do for the
// task now.
func (pr *placedResults) foreign(ctx context.Context, row task.Task) (bool, error) {
	if !pr.Box.HasResult(row.ID) {
		return false, nil
	}
	if oversees, err := pr.reader.oversees(ctx, row); oversees || err != nil {
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
		if _, ours, err := pr.reader.whose(ctx, row, there); ours || err != nil {
			return false, pr.displaceOurs(ctx, row, err)
		}
		need, err := pr.reader.approvalNeed(ctx, row, info)
		if err != nil {
			return false, err
		}
		r, valid := asResult(row, there)
		switch {
		case pr.publisher.refuses(row, need, valid):
			return false, pr.publisher.refuse(ctx, row)
		case valid && pr.mayAnswer(row, r):
			return true, pr.adopt(ctx, row, r, there, need)
		}
	}
	if core.Unread(row) {
		return false, nil // it waits for release already
	}
	if row.ClaimedAt(time.Now()) {
		return false, nil // whoever has it may still be writing, or answer otherwise
	}
	settled := time.Now()
	if info != nil {
		settled = info.ModTime().Add(writing)
	}
	return true, pr.waitForOperator(ctx, row, settled)
}

// displaceOurs moves the result of an earlier revision to the history, unless
// finding out whose it is failed.
func (pr *placedResults) displaceOurs(ctx context.Context, row task.Task, failed error) error {
	if failed != nil {
		return failed
	}
	defer pr.names.lock(row.ID)()
	return pr.publisher.displaceLocked(ctx, row)
}

// adopt ends a task with the result that somebody else put into place, or has a
// person agree to that result first.
func (pr *placedResults) adopt(ctx context.Context, row task.Task, r envelope.Result, there []byte, need approvalNeed) error {
	if row.State == task.Waiting {
		return pr.adoptAnswer(ctx, row, r, there)
	}
	taken, err := pr.writer.decideIfCurrent(ctx, loads(row.Seq, true, true), &core.TakeAnswer{
		Task: row.Seq, Seen: core.See(row), Result: r, Bytes: there, Review: need.after, Terms: need.terms,
	})
	if taken {
		pr.log(row).Info().Str("status", string(r.Status)).Msg("result placed by somebody else adopted")
	}
	return err
}

// waitForOperator holds a task behind a result file that says nothing. It
// tells so once the file has been left alone for a while, and looks again as
// long as the file is there.
func (pr *placedResults) waitForOperator(ctx context.Context, row task.Task, settled time.Time) error {
	now := time.Now()
	told := row.State == task.Held && slices.Contains(row.Reasons, task.ResultInvalid) && row.Until.IsZero()
	if told {
		pr.timers.After(row.Seq, settlePause)
		return nil
	}
	if row.State == task.Waiting && now.Before(settled) {
		pr.timers.Set(row.Seq, settled) // its agent may still be writing
		return nil
	}
	tell, until := !now.Before(settled), settled
	if tell {
		until = time.Time{}
	}
	var data map[string]any
	if tell {
		data = map[string]any{"file": resultFile(row), "faults": pr.faultsOf(row)}
	}
	refused, err := pr.writer.decideIfCurrent(ctx, loads(row.Seq, true, false), &core.RefuseAnswer{Task: row.Seq, Seen: core.See(row), Until: until, Data: data})
	if refused && tell {
		pr.log(row).Warn().Str("file", resultFile(row)).Msg("result file is no result for its task; held until it is mended or removed")
	}
	return err
}

// endWaiting ends the run of a task that waits, and does what comes of that.
// there are the bytes of the answer, where these are not ours to say.
func (pr *placedResults) endWaiting(ctx context.Context, row task.Task, terms task.Terms, o task.Outcome, e task.Event, there []byte) error {
	t, err := pr.completion.prepareTurn(ctx, row, terms, o)
	if err != nil {
		return err
	}
	t.event, t.bytes = e, there
	if err := pr.completion.takeAsRead(ctx, t); err != nil || !t.moved {
		return err
	}
	pr.log(row).Info().Str("status", string(t.next.Status)).Str("reason", string(t.next.Kind)).Msg("task ended while it waited for its agent")
	return nil
}
