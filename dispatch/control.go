package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/retention"
)

// controls are the operations of operators on tasks and agents.
type controls struct {
	*outbox.Base
	*readiness
	steps *steps

	applying   sync.Mutex // held during Apply, so that two do not meet in one repository
	collecting sync.Mutex // held during Collect: one collection at a time
}

// Collect removes the data that retention doesn't keep, or only counts it if dry. It runs
// beside everything else.
func (ct *controls) Collect(ctx context.Context, dry bool) (retention.Collected, error) {
	if err := ct.whenReady(ctx); err != nil {
		return retention.Collected{}, err
	}
	ct.collecting.Lock()
	defer ct.collecting.Unlock()
	return retention.Collector(ct.Parts).Collect(ctx, ct.Opts.Retention, time.Now(), dry)
}

// Hold keeps the latest revision of a task from starting until Release. The error is a
// *StateError when it is running or done; the error of an unknown id wraps ledger.ErrUnknown.
func (ct *controls) Hold(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "hold", id, func(row task.Task) (task.Task, bool, error) {
		return ct.decideCommand(ctx, row, &core.Hold{Task: row.Seq, Seen: core.See(row), By: by})
	})
}

// Release lifts the holds that only a person can lift: an operator's hold, the hold of a task
// that may have run before the ledger was lost, and the hold of a task whose agent needed a
// login. It also lets a task start that waits for the end of a provider's usage limit. It lifts no other hold and no approval. When the answer of a task could not be read,
// Release has it read again and does not run the task. When the callback of a task failed,
// Release has it tried again at once. Any other task is a *StateError.
func (ct *controls) Release(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "release", id, func(row task.Task) (task.Task, bool, error) {
		revisions, err := ct.Reader.Revisions(ctx, id)
		if err != nil {
			return row, false, err
		}
		row = releasable(row, revisions)
		if slices.Contains(row.Reasons, task.ProviderLimit) {
			ct.Pauses.Limits.Release(row.Agent, row.ID)
		}
		released, ok, err := ct.decideCommand(ctx, row, &core.Release{Task: row.Seq, Seen: core.See(row), By: by})
		if ok && row.LacksCallback() {
			ct.callAgain(ctx, revisions)
		}
		return released, ok, err
	})
}

// releasable returns the revision that Release concerns. It is the latest one, unless the
// answer of an earlier one could not be read, or only an earlier one lacks a callback.
func releasable(latest task.Task, revisions []task.Task) task.Task {
	if at := slices.IndexFunc(revisions, core.Unread); at >= 0 {
		return revisions[at]
	}
	if slices.ContainsFunc(latest.Reasons, core.Releasable) {
		return latest
	}
	for _, row := range slices.Backward(revisions) {
		if row.LacksCallback() {
			return row
		}
	}
	return latest
}

// callAgain makes the missing callbacks of a task's revisions again.
func (ct *controls) callAgain(ctx context.Context, revisions []task.Task) {
	for _, row := range revisions {
		if row.LacksCallback() {
			ct.Publisher.CallAgain(context.WithoutCancel(ctx), row)
		}
	}
}

// decideCommand decides a command about a task that doesn't run, and returns the task after it. It
// reports false when the task was moved meanwhile.
func (ct *controls) decideCommand(ctx context.Context, row task.Task, c core.Command) (task.Task, bool, error) {
	state, err := ct.Writer.Decide(ctx, store.TaskLoader(row.Seq, false, false), c)
	if errors.Is(err, core.ErrStale) {
		return row, false, nil
	}
	if err != nil {
		return row, false, err
	}
	return state.Task(row.Seq).Task, true, nil
}

// control applies an operation to the latest revision of a task, once Serve has recovered. It
// tries again when the task was moved meanwhile.
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

// Cancel ends all open revisions of a task with status cancelled. A revision that has not
// started ends at once. A run is ended; Cancel returns when no process of it is left, or with
// the cause of ctx. The answer of a task in review is not published. The error is a *StateError
// when the task is done, also when its run ended by itself first.
func (ct *controls) Cancel(ctx context.Context, id envelope.ID, by core.By) error {
	err := ct.whenReady(ctx)
	for anyEnded := false; err == nil; {
		var row task.Task
		if row, err = ct.Reader.NewestOpen(ctx, id); err != nil {
			break
		}
		if row.State == task.Done {
			if anyEnded {
				return nil
			}
			err = core.StateErrorOf(row)
			break
		}
		var ended bool
		ended, err = ct.Canceller.CancelOne(ctx, row, by)
		anyEnded = anyEnded || ended
	}
	return fmt.Errorf("cancel %s: %w", id, err)
}

// RefuseControl records, as the event control.refused, that a caller without the right to do so
// tried an operation (cancel, hold, ...) on a task, or on an agent when id is "".
func (ct *controls) RefuseControl(ctx context.Context, verb string, id envelope.ID, caller, why string) error {
	return ct.refused(ctx, task.KindControlRefused, id, map[string]any{"verb": verb, "by": caller, "why": why})
}

// refused logs an event of the latest revision of a task, or of no task when the id is unknown.
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

// ErrNoAgent says that no agent of that name is configured. Without it, an operator who
// mistypes a name would believe that the agent is paused.
var ErrNoAgent = errors.New("no such agent is configured; see: mailboxd agents")

// Pause keeps an agent, or Everyone, from starting runs until Resume, also after a restart. New
// tasks are accepted and held; current runs continue. The error of an unknown agent is
// ErrNoAgent.
func (ct *controls) Pause(ctx context.Context, agent string, by core.By) error {
	if agent != store.Everyone && !ct.Agents.Known(agent) {
		return fmt.Errorf("pause agent %q: %w", agent, ErrNoAgent)
	}
	return ct.setPause(ctx, agent, true, task.KindAgentPaused, by)
}

// Resume ends the pause of exactly this name: resuming one agent does not end the pause of
// Everyone, and the reverse. It also ends a usage limit of the agent's provider.
func (ct *controls) Resume(ctx context.Context, agent string, by core.By) error {
	if err := ct.whenReady(ctx); err != nil {
		return fmt.Errorf("resume agent %q: %w", agent, err)
	}
	if err := ct.setPause(ctx, agent, false, task.KindAgentResumed, by); err != nil {
		return err
	}
	if ct.Pauses.Limits.End(agent) {
		ct.steps.executor.WakeLimited(context.WithoutCancel(ctx), agent)
	}
	var resumable []task.Position
	for row, err := range ct.Reader.Unfinished(ctx) {
		if err != nil {
			return fmt.Errorf("resume agent %q: %w", agent, err)
		}
		if row.State == task.Held && slices.Contains(row.Reasons, task.Paused) && !ct.Pauses.Has(row.Agent) {
			resumable = append(resumable, task.Position{Seq: row.Seq, Priority: row.Priority})
		}
	}
	slices.SortFunc(resumable, task.Position.Compare)
	executor.InParallel(resumable, func(p task.Position) { ct.steps.reevaluate(context.WithoutCancel(ctx), p.Seq) })
	ct.steps.router.wake()
	return nil
}

// setPause begins or ends a pause. It logs the event if this changes the pause.
func (ct *controls) setPause(ctx context.Context, agent string, paused bool, kind task.Kind, by core.By) error {
	ct.Pauses.Changing.Lock()
	defer ct.Pauses.Changing.Unlock()
	err := ct.Writer.Update(ctx, func(tx *store.Transaction) error {
		change := tx.Resume
		if paused {
			change = tx.Pause
		}
		changed, err := change(agent)
		if err != nil || !changed {
			return err
		}
		return tx.Log(store.Event(task.Task{}, kind, store.WithField(by.Data(), "agent", agent)))
	})
	if err == nil {
		ct.Pauses.Set(agent, paused)
	}
	return err
}

// Drain pauses an agent, or Everyone. It returns when no run of the agent is left, its results
// are durable and the requesters are notified, or with the cause of ctx.
func (ct *controls) Drain(ctx context.Context, agent string, by core.By) error {
	if err := ct.Pause(ctx, agent, by); err != nil {
		return err
	}
	err := ct.Queue.WaitReleased(ctx, agent)
	if err == nil {
		err = store.Await(ctx, ct.Runs.Find(func(it schedule.Item) bool { return agent == store.Everyone || it.Agent == agent }))
	}
	if err == nil {
		err = ct.Messenger.Notifications.Await(ctx)
	}
	if err != nil {
		return fmt.Errorf("drain agent %q: %w", agent, err)
	}
	return nil
}

// refuseFollower refuses a retry of a request whose command another task carries out: it was
// refused before, and the key went to that task.
func (ct *controls) refuseFollower(ctx context.Context, t envelope.Task) error {
	return ct.Writer.Update(ctx, func(tx *store.Transaction) error {
		command, found, err := exchange.CarriedOut(tx, t)
		if err == nil && found {
			err = fmt.Errorf("%w: mailboxd retry %s", core.ErrFollower, command.Task)
		}
		return err
	})
}

// ErrNoRequest says that the request of a task is no longer kept, so the task can't run again.
var ErrNoRequest = errors.New("its request was removed by retention; send it again")

// Retry runs a task again that ended in error, cancelled or rejected. The retry is the next
// revision with the same content, so the runs, the events and the result of the last revision
// are kept; its result moves to the history. The error is a *StateError when the task ended
// otherwise or is open, ErrFollower when another task carries out the same command,
// ErrStillRefused when policy still refuses it, and ErrNoRequest when its request is no longer
// kept.
func (ct *controls) Retry(ctx context.Context, id envelope.ID, by core.By) error {
	return ct.control(ctx, "retry", id, func(last task.Task) (task.Task, bool, error) {
		if !core.Retriable(last) {
			return last, false, core.StateErrorOf(last)
		}
		if leader, follows, err := ct.Ledger.Leader(ctx, last.ID); follows || err != nil {
			return last, false, errors.Join(err, fmt.Errorf("%w: mailboxd retry %s", core.ErrFollower, leader))
		}
		raw, err := ct.Ledger.Raw(ctx, last.Seq)
		if errors.Is(err, ledger.ErrUnknown) {
			err = ErrNoRequest
		}
		if err != nil {
			return last, false, err
		}
		t, findings := ct.Reader.RequestOf(last, raw)
		if err := ct.refuseFollower(ctx, t); err != nil {
			return last, false, err
		}
		if t, err = ct.Reader.WithSensitivity(ctx, last.Parent, t); err != nil {
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

// resubmit adds the next revision of a task, with the content of the last one.
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
			return err // a newer request was accepted first
		}
		added = state.Latest(last.ID).Task
		return ct.History.RestartConversation(tx, added, last.Seq)
	})
	return added, err == nil && added.Seq != 0, err
}
