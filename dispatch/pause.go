package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/store"
	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

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
	executor.SideBySide(free, func(seq int64) { ct.steps.reevaluate(context.WithoutCancel(ctx), seq) })
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
