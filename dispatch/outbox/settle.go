package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/fault"
)

// A publication is the durable result of a task, with what its publication needs.
type publication struct {
	row      task.Task
	result   []byte
	draft    *store.Draft // of the result; nil: none
	callback envelope.Callback
	earlier  bool // a later revision exists, so the result belongs in the history
}

// Settle publishes the durable result of a finished task: first its file, then the callbacks. A
// failure is tried again later. The retry may repeat both: this is harmless for the file but
// visible in a callback. Settle does nothing for a task whose callbacks are abandoned.
func (pb *Publisher) Settle(ctx context.Context, row task.Task) {
	err := errFollowed
	if run := pb.Runs.WithResult(row.Seq); run != nil {
		err = pb.publishFinal(ctx, row, run)
	}
	if errors.Is(err, errFollowed) {
		err = pb.publish(ctx, row)
	}
	pb.delivered(row, err)
}

// delivered handles the result of a publication.
func (pb *Publisher) delivered(row task.Task, err error) {
	faultName := "result of " + string(row.ID) + " cannot be delivered"
	if err == nil {
		pb.FaultLog.Clear(store.Delivering)
		pb.FaultLog.Clear(faultName)
		return
	}
	if errors.Is(err, errAbandoned) {
		return // logged before
	}
	_, isShared := store.MachineHint(err)
	if !isShared {
		pb.FaultLog.ClearFor(store.Delivering, row)
	}
	if end, now := errors.AsType[*abandonedError](err); now {
		pb.FaultLog.AbandonCallback(faultName, row, end.error)
		return
	}
	if isShared {
		pb.FaultLog.Report(store.Delivering, row, err)
	} else {
		pb.FaultLog.Report(faultName, row, err)
	}
	pb.Timers.After(row.Seq, store.Backoff(store.SettlePause, pb.Callbacks.failures(row.Seq)))
}

// An abandonedError is the reason why the callbacks of a task are not tried again.
type abandonedError struct{ error }

// errAbandoned says that the callbacks were abandoned before.
var errAbandoned = errors.New("its callbacks are abandoned")

// CallAgain makes the failed callbacks of a task again, even if they are abandoned. It begins
// a new round of attempts.
func (pb *Publisher) CallAgain(ctx context.Context, row task.Task) {
	pb.Callbacks.resume(row.Seq)
	pb.Settle(ctx, row)
}

// publish puts the result and makes the callbacks, unless that was done. The lock of the task
// lets one goroutine do it.
func (pb *Publisher) publish(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	if pb.Callbacks.isAbandoned(row.Seq) {
		return errAbandoned
	}
	f, err := pb.final(ctx, row)
	if err != nil || f.row.Put && f.row.Delivered {
		return err
	}
	return pb.publishLocked(ctx, f)
}

// errFollowed says that a later revision may exist, so only the ledger knows where the result
// belongs.
var errFollowed = errors.New("a later revision may be there")

// publishFinal is publish for a task whose run has just ended it: the result is in memory and
// not read back. A later revision that is accepted after that end moves the file to the
// history, under the same lock.
func (pb *Publisher) publishFinal(ctx context.Context, row task.Task, run *store.Run) error {
	defer pb.ResultLocks.Lock(row.ID)()
	if run.MayHaveSuccessor.Load() || run.Published.Swap(true) {
		return errFollowed
	}
	return pb.publishLocked(ctx, publication{row: row, result: *run.Result.Load(), draft: run.Draft.Load(), callback: *run.Callback.Load()})
}

// final returns the publication of a done task, from the ledger.
func (pb *Publisher) final(ctx context.Context, row task.Task) (f publication, err error) {
	if f.row, err = pb.Ledger.Task(ctx, row.Seq); err != nil || f.row.Put && f.row.Delivered {
		return f, err
	}
	if f.result, err = pb.Ledger.Result(ctx, row.Seq); err != nil {
		return f, err
	}
	if f.earlier = !f.row.Latest; f.row.Delivered {
		return f, nil
	}
	raw, err := pb.Ledger.Raw(ctx, row.Seq)
	if err != nil {
		return f, err
	}
	t, _ := dialect.DecodeTask(row.Dialect, raw, pb.Opts.Reading)
	f.callback = t.Callback
	return f, nil
}

// publishLocked publishes a result. The caller holds the task's lock.
func (pb *Publisher) publishLocked(ctx context.Context, f publication) error {
	row, roots := f.row, pb.roots.Load()
	if !row.Put {
		if err := pb.put(ctx, f); err != nil {
			return err
		}
		fault.Point("result-put")
		entry := pb.Info(row).Str("status", string(row.Status))
		if row.Kind != "" {
			entry = entry.Str("reason", string(row.Kind))
		}
		entry.Msg("result put")
	}
	failed := pb.callBack(f)
	err := pb.markPublished(ctx, row, failed)
	fault.Point("put-marked")
	if pb.roots.Load() != roots {
		pb.seekMissing() // RootReplaced does not know of a result that is put and not marked
	}
	if err == nil && pb.Callbacks.isAbandoned(row.Seq) {
		return &abandonedError{failed}
	}
	return errors.Join(err, failed)
}

// markPublished records that a result is in place, and whether its callbacks are made or why
// not.
func (pb *Publisher) markPublished(ctx context.Context, row task.Task, failed error) error {
	failures, exhausted := pb.Callbacks.failures(row.Seq), failed != nil && pb.Callbacks.exhausted(row.Seq)
	err := pb.Ledger.UpdateSoon(ctx, func(tx *ledger.Tx) error { // when this mark is lost, the same result is put again
		if failed == nil {
			return tx.MarkPut(row.Seq, true)
		}
		err := tx.MarkPut(row.Seq, false)
		data := map[string]any{"reason": failed.Error()}
		if err == nil && failures == 1 { // later failures are not recorded
			err = tx.Log(store.Event(row, task.KindCallbackFailed, data))
		}
		if err == nil && exhausted {
			err = tx.Log(store.Event(row, task.KindCallbackAbandoned, store.WithField(data, "attempts", failures)))
		}
		return err
	})
	switch {
	case err != nil:
	case failed == nil:
		pb.Callbacks.forget(row.Seq)
	case exhausted:
		pb.Callbacks.abandon(row.Seq)
	}
	return err
}

// resultMode lets only the mailbox's owner read a result.
const resultMode = 0o600

// restore puts a missing result file again.
func (pb *Publisher) restore(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	result, err := pb.Ledger.Result(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil // retention has removed it
	}
	if err != nil {
		return err
	}
	latest, err := pb.latest(ctx, row)
	if err != nil {
		return err
	}
	pb.Log(row).Warn().Msg("result file is missing; putting it again")
	return pb.put(ctx, publication{row: row, result: result, earlier: !latest})
}

// put puts the result file, or moves the result to the history when a later revision was
// accepted meanwhile. The caller holds the task's lock.
func (pb *Publisher) put(ctx context.Context, f publication) error {
	row := f.row
	if f.earlier {
		return pb.State.PutHistory(row.ID, row.Revision, f.result)
	}
	err := pb.putFile(f)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	content, _, err := pb.Box.ReadResult(row.ID)
	switch {
	case err == nil && bytes.Equal(content, f.result):
		return nil // put before a crash
	case runner.Passing(err):
		return err // it may be the same result
	case !pb.Box.HasResult(row.ID):
		return fmt.Errorf("put result %s: the file that had its name is gone", row.ID)
	}
	return pb.putDespite(ctx, f)
}

// putDespite handles a result whose file name is taken. The other file stays, unless it was
// there before an approval that the task needed. The caller holds the task's lock.
func (pb *Publisher) putDespite(ctx context.Context, f publication) error {
	needed, err := pb.reader.NeededApproval(ctx, f.row)
	if err != nil {
		return err
	}
	if !needed {
		return pb.conflict(ctx, f.row)
	}
	switch gone, err := pb.refuseLocked(ctx, f.row); {
	case errors.Is(err, errNotMovable):
		return pb.conflict(ctx, f.row)
	case err != nil:
		return err
	case !gone:
		return fmt.Errorf("put result %s: a file that may still be written has its name", f.row.ID)
	}
	return pb.Box.PutResult(f.row.ID, f.result, resultMode)
}

// conflict records that a file of another program is in place of the result.
func (pb *Publisher) conflict(ctx context.Context, row task.Task) error {
	pb.Log(row).Warn().Str("file", store.ResultFile(row)).Msg("result file written by another process; not overwriting")
	return pb.writer.Update(ctx, func(tx *store.Transaction) error {
		return tx.Log(store.Event(row, task.KindResultConflict, map[string]any{"file": store.ResultFile(row)}))
	})
}

// latest reports whether no later revision of the task was accepted. It reads one row: a list
// of revisions has to wait until the ledger's tables are complete.
func (pb *Publisher) latest(ctx context.Context, row task.Task) (bool, error) {
	now, err := pb.Ledger.Task(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return false, nil
	}
	return now.Latest, err
}

// callBack appends the result line to the files that the request names.
func (pb *Publisher) callBack(f publication) error {
	row, to := f.row, f.callback
	if row.Delivered || to == (envelope.Callback{}) {
		return nil
	}
	line, err := jsontext.AppendFormat(nil, f.result, jsontext.PreserveRawStrings(true))
	if err != nil {
		return fmt.Errorf("put result %s on one line: %w", row.ID, err)
	}
	return pb.Callbacks.make(row.Seq, map[string]func() error{
		"callback.queue":       appendCall(to.Queue, line, pb.Box.AppendQueue),
		"callback.file_append": appendCall(to.FileAppend, line, pb.appendCallback),
	})
}

// appendCallback appends the line to a file that is no inbox.
func (pb *Publisher) appendCallback(path string, line []byte) error {
	if err := pb.reader.CheckNoInbox(path); err != nil {
		return err
	}
	return pb.Box.AppendCallback(path, line)
}

// appendCall returns the call that appends the line to a file; nil when no file is named.
func appendCall(to string, line []byte, add func(string, []byte) error) func() error {
	if to == "" {
		return nil
	}
	return func() error { return add(to, line) }
}
