package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/ledger"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// The controls are what operators do to tasks and agents.
type controls struct {
	*outbox.Base
	*readiness
	steps *steps
}

// Hold keeps the latest revision of a task from starting until Release. One
// that is running or done is a *StateError; an id that is not known wraps
// ledger.ErrUnknown.
func (ct *controls) Hold(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "hold", id, func(row task.Task) (task.Task, bool, error) {
		return ct.steer(ctx, row, &core.Hold{Task: row.Seq, Seen: core.See(row), By: by})
	})
}

// Release takes away what only a person can: an operator's hold, that of a
// task which may have run before the ledger was lost, and that of one whose
// agent had to be logged in. It lifts nothing else,
// and no approval. A task whose answer could not be read has it read again, and
// is not run for that. A task whose result could not be delivered to its callback has
// that tried again at once. Any other task is a *StateError.
func (ct *controls) Release(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "release", id, func(row task.Task) (task.Task, bool, error) {
		revisions, err := ct.Reader.Revisions(ctx, id)
		if err != nil {
			return row, false, err
		}
		row = releasable(row, revisions)
		released, ok, err := ct.steer(ctx, row, &core.Release{Task: row.Seq, Seen: core.See(row), By: by})
		if ok && row.LacksCallback() {
			ct.callAgain(ctx, revisions)
		}
		return released, ok, err
	})
}

// releasable returns the revision that a release is about: the latest, unless the answer
// of an earlier one cannot be read, or only an earlier one has something to release.
func releasable(latest task.Task, revisions []task.Task) task.Task {
	if at := slices.IndexFunc(revisions, core.Unread); at >= 0 {
		return revisions[at]
	}
	if len(core.Lasting(latest.Reasons)) > 0 {
		return latest
	}
	for _, row := range slices.Backward(revisions) {
		if row.LacksCallback() {
			return row
		}
	}
	return latest
}

// callAgain makes the callbacks again that revisions of a task lack.
func (ct *controls) callAgain(ctx context.Context, revisions []task.Task) {
	for _, row := range revisions {
		if row.LacksCallback() {
			ct.Publisher.CallAgain(context.WithoutCancel(ctx), row)
		}
	}
}

// steer gives a command about a task that doesn't run, and returns the task as it is
// then. It reports false when somebody moved the task meanwhile.
func (ct *controls) steer(ctx context.Context, row task.Task, c core.Command) (task.Task, bool, error) {
	state, err := ct.Writer.Decide(ctx, store.TaskLoader(row.Seq, false, false), c)
	if errors.Is(err, core.ErrStale) {
		return row, false, nil
	}
	if err != nil {
		return row, false, err
	}
	return state.Task(row.Seq).Task, true, nil
}

// control does something to the latest revision of a task: again when
// somebody else moved it meanwhile, and not before Serve has recovered.
func (ct *controls) control(ctx context.Context, verb string, id envelope.ID, do func(task.Task) (task.Task, bool, error)) error {
	if err := ct.whenReady(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	for {
		row, err := ct.Reader.Newest(ctx, id)
		moved := false
		if err == nil {
			row, moved, err = do(row)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, id, err)
		}
		if moved {
			ct.steps.judgeDue(context.WithoutCancel(ctx), row)
			return nil
		}
	}
}

// Cancel ends a task with status cancelled: all of its revisions that are not
// done. What has not started is over at once; a run is ended, and Cancel
// returns when nothing is left of it, or with the cause of ctx. The answer of
// one in review is not shown. A task that is done is a *StateError, also when its run came to an end of its own first.
func (ct *controls) Cancel(ctx context.Context, id envelope.ID, by core.By) error {
	err := ct.whenReady(ctx)
	for did := false; err == nil; {
		var row task.Task
		if row, err = ct.Reader.NewestOpen(ctx, id); err != nil {
			break
		}
		if row.State == task.Done {
			if did {
				return nil
			}
			err = core.StateErrorOf(row)
			break
		}
		var ended bool
		ended, err = ct.Canceller.CancelOne(ctx, row, by)
		did = did || ended
	}
	return fmt.Errorf("cancel %s: %w", id, err)
}

// RefuseControl only remembers, as the event control.refused, that somebody who
// may not wanted something: cancel, hold, and so on, of a task, or of an agent
// when id is "".
func (ct *controls) RefuseControl(ctx context.Context, verb string, id envelope.ID, who, why string) error {
	return ct.refused(ctx, task.KindControlRefused, id, map[string]any{"verb": verb, "by": who, "why": why})
}

// refused logs an event of the latest revision of a task, or of no task where
// there is none by that name.
func (ct *controls) refused(ctx context.Context, kind task.Kind, id envelope.ID, data map[string]any) error {
	row := task.Task{}
	if id != "" {
		revisions, err := ct.Ledger.Revisions(ctx, id)
		if err != nil {
			return fmt.Errorf("remember refusal of %s: %w", id, err)
		}
		if len(revisions) > 0 {
			row = revisions[len(revisions)-1]
		} else {
			data["task_id"] = id
		}
	}
	err := ct.Writer.Update(ctx, func(tx *store.Transaction) error { return tx.Log(store.Event(row, kind, data)) })
	if err != nil {
		return fmt.Errorf("remember refusal: %w", err)
	}
	return nil
}

// ErrNoAgent says that nobody configured an agent of that name, so that one who
// mistypes it does not believe another at rest.
var ErrNoAgent = errors.New("no such agent is configured; see: mailboxd agents")

// Pause keeps an agent, or Everyone, from starting anything until Resume,
// across restarts. Tasks go on to come in and are held; what runs goes on. One
// that is not known is ErrNoAgent.
func (ct *controls) Pause(ctx context.Context, agent string, by core.By) error {
	if agent != store.Everyone && !ct.Agents.Known(agent) {
		return fmt.Errorf("pause agent %q: %w", agent, ErrNoAgent)
	}
	err := ct.setPause(ctx, agent, true, task.KindAgentPaused, by)
	if err != nil {
		return err
	}
	ct.Queue.CancelPrefetch(agent)
	return nil
}

// Resume ends the pause that has exactly this name: that of Everyone does not
// end by resuming one agent, nor the other way round.
func (ct *controls) Resume(ctx context.Context, agent string, by core.By) error {
	if err := ct.whenReady(ctx); err != nil {
		return fmt.Errorf("resume agent %q: %w", agent, err)
	}
	if err := ct.setPause(ctx, agent, false, task.KindAgentResumed, by); err != nil {
		return err
	}
	var free []int64
	for _, task := range ct.Held.All() {
		if task.Paused && !ct.Pauses.Has(task.Agent.Value()) {
			free = append(free, task.Seq)
		}
	}
	slices.Sort(free) // the oldest is queued first
	executor.InParallel(free, func(seq int64) { ct.steps.reevaluate(context.WithoutCancel(ctx), seq) })
	return nil
}

// setPause begins or ends a pause, with its event if that is news.
func (ct *controls) setPause(ctx context.Context, agent string, paused bool, kind task.Kind, by core.By) error {
	ct.Pauses.Changing.Lock()
	defer ct.Pauses.Changing.Unlock()
	err := ct.Writer.Update(ctx, func(tx *store.Transaction) error {
		change := tx.Resume
		if paused {
			change = tx.Pause
		}
		news, err := change(agent)
		if err != nil || !news {
			return err
		}
		return tx.Log(store.Event(task.Task{}, kind, store.WithField(by.Data(), "agent", agent)))
	})
	if err == nil {
		ct.Pauses.Set(agent, paused)
	}
	return err
}

// Drain pauses an agent, or Everyone, and returns when nothing of it runs any
// more, its results are durable, and their requesters are notified, or
// with the cause of ctx.
func (ct *controls) Drain(ctx context.Context, agent string, by core.By) error {
	if err := ct.Pause(ctx, agent, by); err != nil {
		return err
	}
	err := ct.Queue.WaitReleased(ctx, agent)
	if err == nil {
		err = store.Await(ctx, ct.Runs.Find(func(it schedule.Item) bool { return agent == store.Everyone || it.Agent == agent }))
	}
	if err == nil {
		err = ct.Messenger.NotifyQueue.Await(ctx)
	}
	if err != nil {
		return fmt.Errorf("drain agent %q: %w", agent, err)
	}
	return nil
}

// ErrNoRequest says that the request of a task is gone, so it can't be run again.
var ErrNoRequest = errors.New("its request is not kept any more; send it again")

// Retry has a task run again that ended in error, cancelled or rejected. It
// becomes the next revision, with the same content, so all that is known of
// the one before stays: its runs, its story, and its result, which goes to the
// history. One that ended otherwise, or has not ended, is a *StateError; one
// that policy still refuses stays as it is, which is ErrStillRefused, and one
// whose request is gone is ErrNoRequest.
func (ct *controls) Retry(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "retry", id, func(last task.Task) (task.Task, bool, error) {
		if !core.Retriable(last) {
			return last, false, core.StateErrorOf(last)
		}
		raw, err := ct.Ledger.Raw(ctx, last.Seq)
		if errors.Is(err, ledger.ErrUnknown) {
			err = ErrNoRequest
		}
		if err != nil {
			return last, false, err
		}
		t, findings := ct.Reader.RequestOf(last, raw)
		if t, err = ct.Reader.WithParentSensitivity(ctx, last.Parent, t); err != nil {
			return last, false, err
		}
		verdict, err := ct.Reader.JudgeLineage(ctx, last, ct.Reader.Judge(t, findings, time.Now()))
		if err != nil {
			return last, false, err
		}
		if !verdict.Admit {
			return last, false, fmt.Errorf("%w: %s", core.ErrStillRefused, verdict.Findings.Refusals())
		}
		return ct.resubmit(ctx, last, raw, verdict, by)
	})
}

// resubmit adds the next revision of a task with the content of the last one.
func (ct *controls) resubmit(ctx context.Context, last task.Task, raw []byte, v task.Verdict, by core.By) (task.Task, bool, error) {
	var added task.Task
	err := ct.Writer.Update(ctx, func(tx *store.Transaction) error {
		added = task.Task{}
		state, err := store.LoadRevisions(tx, last.ID)
		if err != nil {
			return err
		}
		ct.Runs.MarkSuccessor(last.Seq)
		answer, err := ct.Writer.DecideIn(tx, state, &core.Resubmit{Task: last.Seq, By: by, Raw: raw, Verdict: v}, time.Now())
		if err != nil || answer != nil {
			return err // a newer request came first
		}
		added = state.Latest(last.ID).Task
		return ct.History.RestartConversation(tx, added, last.Seq)
	})
	return added, err == nil && added.Seq != 0, err
}
