package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// Anybody who can write to the mailbox can place a result file. For a task that
// needs an approval such a file is no answer before the approval: it is moved to
// the history, where it blocks nothing and nothing of it is lost (AINL-48, AINL-85).

// Refuses reports whether a result file is refused that is there before a run.
// An agent that fetches its tasks answers with such a file, so only the approval
// of the start comes before that; a person reviews the answer then. What is no
// result yet may be an answer that such an agent still writes.
func (pb *Publisher) Refuses(row task.Task, need store.ApprovalNeed, valid bool) bool {
	fetched := row.State == task.Waiting || pb.Agents.Inbox(row.Agent).File != ""
	overseen := row.State != task.Waiting && pb.Agents.Protocol.Overseer(row.Agent) != "" // who is asked when it waits
	return need.Before || need.After && (!fetched || valid && overseen)
}

// GuardRun has every look move a result file away that is placed while the run
// lasts, if the answer needs an approval.
func (pb *Publisher) GuardRun(r *store.Run, row task.Task, terms task.Terms) {
	if core.NeedsReview(terms) || pb.Agents.Protocol.Overseer(row.Agent) != "" {
		r.NeedsApproval.Store(&row)
	}
}

// Guard keeps the name of a task's result file free while the answer needs an
// approval. What cannot be moved, such as a directory, is left alone, and an event
// says so once.
func (pb *Publisher) Guard(ctx context.Context, row task.Task) error {
	err := pb.Refuse(ctx, row)
	if !errors.Is(err, errNotMovable) {
		return err
	}
	return pb.ConflictOnce(ctx, row)
}

// ConflictOnce is conflict for a task that waits, once for as long as it does.
func (pb *Publisher) ConflictOnce(ctx context.Context, row task.Task) error {
	if !pb.Held.MarkConflictLogged(row.Seq) {
		return nil
	}
	return pb.conflict(ctx, row)
}

// Refuse moves the result file of a task to the history, unless somebody moved
// the task meanwhile.
func (pb *Publisher) Refuse(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	now, err := pb.Ledger.Task(ctx, row.Seq)
	if err != nil || now.State != row.State || now.Attempt != row.Attempt {
		return err // what lies there may be its result
	}
	_, err = pb.refuseLocked(ctx, now)
	return err
}

// errNotMovable says that what has the name of a result file is no file that can
// be read.
var errNotMovable = errors.New("not a file that can be moved to the history")

// refuseLocked is Refuse by somebody who has locked the task's name. It reports
// whether nothing has the name any more. It waits with a file that somebody may
// still be writing. A crash between its steps has them made again: the history
// keeps the same bytes once, and the same file is logged once.
func (pb *Publisher) refuseLocked(ctx context.Context, row task.Task) (gone bool, err error) {
	was, err := pb.Box.StatResult(row.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	there, _, err := pb.Box.ReadResult(row.ID)
	if err != nil && !runner.Passing(err) {
		return false, fmt.Errorf("%w: %w", errNotMovable, err)
	}
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(there)
	hash := hex.EncodeToString(sum[:])
	if age := time.Since(was.ModTime()); age >= 0 && age < store.Writing {
		if _, valid := store.AsResult(row, there); !valid {
			pb.Timers.Set(row.Seq, was.ModTime().Add(store.Writing))
			return false, nil
		}
	}
	if row.State != task.Review || hash != row.ResultSum { // else it is the answer, which the ledger has
		if same, err := pb.recordRefusal(ctx, row, there, hash, was.ModTime()); !same || err != nil {
			return false, err
		}
	}
	gone, err = pb.Box.RemoveThisResult(row.ID, was)
	fault.Point("refused-removed")
	if err == nil && gone {
		pb.Log(row).Warn().Str("file", store.ResultFile(row)).Msg("result file moved to the history: its task needs an approval")
	}
	return gone, err
}

// recordRefusal keeps a refused result file and logs that it was refused. It
// reports whether the task is as it was.
func (pb *Publisher) recordRefusal(ctx context.Context, row task.Task, there []byte, hash string, written time.Time) (same bool, err error) {
	kept, err := pb.State.PutRefused(row.ID, row.Revision, there)
	if err != nil {
		return false, err
	}
	fault.Point("refused-kept")
	e := store.Event(row, task.KindResultRefused, map[string]any{
		"file": store.ResultFile(row), "kept": kept, "hash": hash, "written": written.UTC().Format(time.RFC3339Nano),
		"reason": "the task needs an approval",
	})
	err = pb.writer.Update(ctx, func(tx *store.Transaction) (err error) {
		if same, err = store.Unmoved(tx, row); err != nil || !same {
			return err
		}
		before, err := tx.EventsSince(row.Seq, 0)
		if err != nil || slices.ContainsFunc(before, func(b task.Event) bool { return b.Kind == e.Kind && bytes.Equal(b.Data, e.Data) }) {
			return err // it was logged before a crash
		}
		return tx.Log(e)
	})
	fault.Point("refused-recorded")
	return same, err
}
