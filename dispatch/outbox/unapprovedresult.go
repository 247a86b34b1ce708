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
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/testtools/fault"
)

// Any program that can write to the mailbox can place a result file. Before the approval that a
// task needs, such a file is not its answer. It is moved to the history, where it blocks
// nothing and no byte is lost (AINL-48, AINL-85).

// Refuses reports whether a result file that exists before a run is refused. An agent that
// fetches its tasks answers with such a file, so only the approval of the start precedes it; a
// person reviews the answer later. An invalid file may be an answer that such an agent is still
// writing.
func (pb *Publisher) Refuses(row task.Task, need store.ApprovalNeed, valid bool) bool {
	fetched := row.State == task.Waiting || pb.Agents.Inbox(row.Agent).File != ""
	overseen := row.State != task.Waiting && need.Overseen // a waiting task asks its overseer after the answer
	return need.Before || need.After && (!fetched || valid && overseen)
}

// GuardRun lets each look move away a result file that is placed during the run, if the answer
// needs an approval.
func (pb *Publisher) GuardRun(r *store.Run, row task.Task, job task.Job) {
	if core.NeedsReview(job.Terms) || pb.Agents.Protocol.OverseerOf(row.Agent, job.Task) != "" {
		r.NeedsApproval.Store(&row)
	}
}

// Guard keeps the name of a task's result file free while the answer needs an approval. A file
// that can't be moved, such as a directory, stays, and one event records that.
func (pb *Publisher) Guard(ctx context.Context, row task.Task) error {
	err := pb.Refuse(ctx, row)
	if !errors.Is(err, errNotMovable) {
		return err
	}
	return pb.ConflictOnce(ctx, row)
}

// ConflictOnce is conflict for a waiting task, once for the time that it waits, also if several goroutines find
// the file.
func (pb *Publisher) ConflictOnce(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	events, err := pb.Ledger.History(ctx, row.ID, maxEventsOfWait)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		if e.Revision == row.Revision && e.Kind == task.KindResultConflict {
			return nil
		}
		if slices.Contains(beginWait, e.Kind) {
			break
		}
	}
	return pb.conflict(ctx, row)
}

// beginWait are the events with which a task begins to wait.
var beginWait = []task.Kind{task.KindTaskHeld, task.KindTaskWaiting, task.KindTaskPutBack, task.KindApprovalAsked, task.KindOversightAsked}

// maxEventsOfWait is how many events of a task ConflictOnce reads. After more in one time that it
// waits, a conflict is logged once more.
const maxEventsOfWait = 200

// Refuse moves the result file of a task to the history, unless the task was moved meanwhile.
func (pb *Publisher) Refuse(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	now, err := pb.Ledger.Task(ctx, row.Seq)
	if err != nil || now.State != row.State || now.Attempt != row.Attempt {
		return err // the file may be its result
	}
	_, err = pb.refuseLocked(ctx, now)
	return err
}

// errNotMovable says that the result's name belongs to something that can't be read as a file.
var errNotMovable = errors.New("not a file that can be moved to the history")

// refuseLocked is Refuse for a caller that holds the task's lock. It reports whether the name
// is free. It waits while a program may still be writing the file. After a crash it repeats its
// steps: the history keeps equal bytes once, and one file is logged once.
func (pb *Publisher) refuseLocked(ctx context.Context, row task.Task) (gone bool, err error) {
	info, err := pb.Box.StatResult(row.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	content, _, err := pb.Box.ReadResult(row.ID)
	if err != nil && !runner.Passing(err) {
		return false, fmt.Errorf("%w: %w", errNotMovable, err)
	}
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	if age := time.Since(info.ModTime()); age >= 0 && age < store.Writing {
		if _, valid := store.AsResult(row, content); !valid {
			pb.LookAt(row, info.ModTime().Add(store.Writing))
			return false, nil
		}
	}
	if row.State != task.Review || hash != row.ResultSum { // otherwise it is the answer, which the ledger has
		if same, err := pb.recordRefusal(ctx, row, content, hash, info.ModTime()); !same || err != nil {
			return false, err
		}
	}
	gone, err = pb.Box.RemoveThisResult(row.ID, info)
	fault.Point("refused-removed")
	if err == nil && gone {
		pb.Log(row).Warn().Str("file", store.ResultFile(row)).Msg("result file moved to the history: its task needs an approval")
	}
	return gone, err
}

// recordRefusal keeps a refused result file and logs the refusal. It reports whether the task
// is unchanged.
func (pb *Publisher) recordRefusal(ctx context.Context, row task.Task, content []byte, hash string, written time.Time) (same bool, err error) {
	kept, err := pb.State.PutRefused(row.ID, row.Revision, content)
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
