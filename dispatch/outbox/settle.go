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
	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// A final is the durable result of a task, and what else it takes to show it.
type publication struct {
	row      task.Task
	result   []byte
	draft    *store.Draft // of the result; nil: none
	callback envelope.Callback
	earlier  bool // a later revision is there, so its place is in the history
}

// Settle shows the durable result of a finished task: its file first, then
// the callbacks. What cannot be done now is tried again later; both may then
// happen twice, which a result file does not notice and a callback may. It does
// nothing for a task whose callbacks are abandoned.
func (pb *Publisher) Settle(ctx context.Context, row task.Task) {
	err := errFollowed
	if run := pb.Runs.WithResult(row.Seq); run != nil {
		err = pb.showFinal(ctx, row, run)
	}
	if errors.Is(err, errFollowed) {
		err = pb.show(ctx, row)
	}
	pb.delivered(row, err)
}

// delivered takes note of what became of showing a result.
func (pb *Publisher) delivered(row task.Task, err error) {
	own := "result of " + string(row.ID) + " cannot be delivered"
	if err == nil {
		pb.FaultLog.Clear(store.Delivering)
		pb.FaultLog.Clear(own)
		return
	}
	if errors.Is(err, errAbandoned) {
		return // they were abandoned before
	}
	if end, now := errors.AsType[*abandonedError](err); now {
		pb.FaultLog.Abandon(own, row, end.error)
		return
	}
	if _, everybodys := store.MachineHint(err); everybodys {
		pb.FaultLog.Report(store.Delivering, row, err)
	} else {
		pb.FaultLog.Report(own, row, err)
	}
	pb.Timers.After(row.Seq, store.Backoff(store.SettlePause, pb.Calls.failures(row.Seq)))
}

// An abandonedError is why callbacks are not tried again from now on.
type abandonedError struct{ error }

// errAbandoned says that callbacks were abandoned before.
var errAbandoned = errors.New("its callbacks are abandoned")

// CallAgain makes the callbacks of a task again that have failed, also when they are
// abandoned.
func (pb *Publisher) CallAgain(ctx context.Context, row task.Task) {
	pb.Calls.resume(row.Seq)
	pb.Settle(ctx, row)
}

// show puts the result and makes the callbacks, unless that was done: the
// task's name is locked, so it is done by one goroutine.
func (pb *Publisher) show(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	if pb.Calls.isAbandoned(row.Seq) {
		return errAbandoned
	}
	f, err := pb.final(ctx, row)
	if err != nil || f.row.Put && f.row.Delivered {
		return err
	}
	return pb.showLocked(ctx, f)
}

// errFollowed says that only the ledger knows where a result belongs.
var errFollowed = errors.New("a later revision may be there")

// showFinal is show for a task that its run has just ended: what there is to show
// is in hand, and not read back. Who accepts a later revision once that end is
// durable moves what we put to the history, when it has the name.
func (pb *Publisher) showFinal(ctx context.Context, row task.Task, run *store.Run) error {
	defer pb.ResultLocks.Lock(row.ID)()
	if run.MayHaveSuccessor.Load() || run.Published.Swap(true) {
		return errFollowed
	}
	return pb.showLocked(ctx, publication{row: row, result: *run.Result.Load(), draft: run.Draft.Load(), callback: *run.Callback.Load()})
}

// publication returns what the ledger has to show of a task that is done.
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

// showLocked shows a final. The caller has locked the task's name.
func (pb *Publisher) showLocked(ctx context.Context, f publication) error {
	row, roots := f.row, pb.roots.Load()
	if !row.Put {
		if err := pb.put(ctx, f); err != nil {
			return err
		}
		fault.Point("result-put")
		said := pb.Info(row).Str("status", string(row.Status))
		if row.Kind != "" {
			said = said.Str("reason", string(row.Kind))
		}
		said.Msg("result put")
	}
	missed := pb.callBack(f)
	err := pb.markShown(ctx, row, missed)
	fault.Point("put-marked")
	if pb.roots.Load() != roots {
		pb.seekMissing() // what was put and not marked was not looked for when the root was replaced
	}
	if err == nil && pb.Calls.isAbandoned(row.Seq) {
		return &abandonedError{missed}
	}
	return errors.Join(err, missed)
}

// markShown remembers that a result is in place and whether its callbacks are made, or
// why not.
func (pb *Publisher) markShown(ctx context.Context, row task.Task, missed error) error {
	failures, exhausted := pb.Calls.failures(row.Seq), missed != nil && pb.Calls.exhausted(row.Seq)
	err := pb.Ledger.UpdateSoon(ctx, func(tx *ledger.Tx) error { // a mark that is lost has the result put again, which changes nothing
		if missed == nil {
			return tx.MarkSettled(row.Seq)
		}
		err := tx.MarkPut(row.Seq)
		data := map[string]any{"reason": missed.Error()}
		if err == nil && failures == 1 { // or it was recorded before
			err = tx.Log(store.Event(row, task.KindCallbackFailed, data))
		}
		if err == nil && exhausted {
			err = tx.Log(store.Event(row, task.KindCallbackAbandoned, store.WithField(data, "attempts", failures)))
		}
		return err
	})
	switch {
	case err != nil:
	case missed == nil:
		pb.Calls.forget(row.Seq)
	case exhausted:
		pb.Calls.abandon(row.Seq)
	}
	return err
}

// resultMode lets nobody but the mailbox's owner read a result.
const resultMode = 0o600

// restore puts a result file that went missing.
func (pb *Publisher) restore(ctx context.Context, row task.Task) error {
	defer pb.ResultLocks.Lock(row.ID)()
	result, err := pb.Ledger.Result(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil // it was not to be kept any longer
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

// put places the result file, or files the result away when a later revision
// was accepted meanwhile. The caller has locked the task's name.
func (pb *Publisher) put(ctx context.Context, f publication) error {
	row := f.row
	if f.earlier {
		return pb.State.PutHistory(row.ID, row.Revision, f.result)
	}
	err := pb.putFile(f)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, _, err := pb.Box.ReadResult(row.ID)
	switch {
	case err == nil && bytes.Equal(there, f.result):
		return nil // put before a crash
	case runner.Passing(err):
		return err // it may be ours
	case !pb.Box.HasResult(row.ID):
		return fmt.Errorf("put result %s: the file that had its name is gone", row.ID)
	}
	return pb.putDespite(ctx, f)
}

// putDespite places a result file whose name somebody else's file has: that file
// is left alone, unless it was there before an approval that the task needed. The
// caller has locked the task's name.
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

// conflict remembers that a result which is not ours is in place.
func (pb *Publisher) conflict(ctx context.Context, row task.Task) error {
	pb.Log(row).Warn().Str("file", store.ResultFile(row)).Msg("a result that is not ours is in place; left alone")
	return pb.writer.Update(ctx, func(tx *store.Transaction) error {
		return tx.Log(store.Event(row, task.KindResultConflict, map[string]any{"file": store.ResultFile(row)}))
	})
}

// latest reports whether no later revision of the task was accepted. It asks for
// the one row: a list of revisions waits until the ledger's tables have all of it.
func (pb *Publisher) latest(ctx context.Context, row task.Task) (bool, error) {
	now, err := pb.Ledger.Task(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return false, nil
	}
	return now.Latest, err
}

// callBack appends the result line where the request asked for it.
func (pb *Publisher) callBack(f publication) error {
	row, to := f.row, f.callback
	if row.Delivered || to == (envelope.Callback{}) {
		return nil
	}
	line, err := jsontext.AppendFormat(nil, f.result, jsontext.PreserveRawStrings(true))
	if err != nil {
		return fmt.Errorf("put result %s on one line: %w", row.ID, err)
	}
	return pb.Calls.make(row.Seq, map[string]func() error{
		"callback.queue":       given(to.Queue, line, pb.Box.AppendQueue),
		"callback.file_append": given(to.FileAppend, line, pb.Box.AppendCallback),
	})
}

// given is the call to append the line to a place, or nil when none is named.
func given(to string, line []byte, add func(string, []byte) error) func() error {
	if to == "" {
		return nil
	}
	return func() error { return add(to, line) }
}
