package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// writing is how long an unreadable result file may be a person still typing.
const writing = 5 * time.Second

// adoptHeld looks whether a result file was placed for a task that waits, or for
// one that runs and whose answer needs an approval. Every look does that, so for
// all of them at once: one by one, beside 40,000 held tasks, it was most of what
// taking in 4,096 lines took.
func (d *Dispatcher) adoptHeld(ctx context.Context) {
	seqs, ids := d.held.names()
	for _, row := range d.runs.guarded() {
		seqs, ids = append(seqs, row.Seq), append(ids, row.ID)
	}
	for i, there := range d.Box.HaveResults(ids) {
		if there {
			d.revisit(ctx, seqs[i])
		}
	}
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

// asResult decodes a result file, and reports whether it is a result for a task.
func asResult(row task.Task, there []byte) (envelope.Result, bool) {
	r, findings := envelope.DecodeResult(there)
	return r, !findings.Refused() && r.TaskID == row.ID
}

// oversees reports whether a task is an overseer's look at an answer.
func (rd *reader) oversees(ctx context.Context, row task.Task) (bool, error) {
	if row.Parent == 0 {
		return false, nil
	}
	talk, _, err := rd.Ledger.Talk(ctx, row.Seq)
	return talk.Tie == envelope.Oversee, err
}

// whose says which earlier revision a result file belongs to, if any: such a
// file is never taken for an answer to a later one.
func (rd *reader) whose(ctx context.Context, row task.Task, there []byte) (revision int, ours bool, err error) {
	digest := sha256.Sum256(there)
	sum := hex.EncodeToString(digest[:])
	revisions, err := rd.Ledger.Revisions(ctx, row.ID)
	for _, r := range revisions {
		if r.Revision < row.Revision && r.ResultSum == sum {
			return r.Revision, true, nil
		}
	}
	return 0, false, err
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

func resultFile(row task.Task) string { return "results/" + string(row.ID) + ".json" }
