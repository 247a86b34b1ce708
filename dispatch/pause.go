package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mailboxd/internal/core"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
)

// ErrNoAgent says that nobody configured an agent of that name, so that one who
// mistypes it does not believe another at rest.
var ErrNoAgent = errors.New("no such agent is configured; see: mailboxd agents")

// Everyone, in the place of an agent's id, means every agent.
const Everyone = schedule.AllAgents

// pauses knows who may start nothing, as the ledger has it.
type pauses struct {
	turning  sync.Mutex // held by the one worker that turns tasks away
	changing sync.Mutex // held while the ledger and agents change, so that both say what came last

	mu     sync.Mutex // guards agents
	agents map[string]bool
}

func newPauses(agents []string) *pauses {
	p := &pauses{agents: map[string]bool{}}
	for _, a := range agents {
		p.agents[a] = true
	}
	return p
}

// has reports whether an agent may start nothing.
func (p *pauses) has(agent string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agents[agent] || p.agents[Everyone]
}

func (p *pauses) set(agent string, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused {
		p.agents[agent] = true
	} else {
		delete(p.agents, agent)
	}
}

// Pause keeps an agent, or Everyone, from starting anything until Resume,
// across restarts. Tasks go on to come in and are held; what runs goes on. One
// that is not known is ErrNoAgent.
func (d *Dispatcher) Pause(ctx context.Context, agent string, by core.By) error {
	if agent != Everyone && !d.agents.Known(agent) {
		return fmt.Errorf("pause agent %q: %w", agent, ErrNoAgent)
	}
	err := d.setPause(ctx, agent, true, task.KindAgentPaused, by)
	if err != nil {
		return err
	}
	d.queue.CancelPrefetch(agent)
	return nil
}

// Resume ends the pause that has exactly this name: that of Everyone does not
// end by resuming one agent, nor the other way round.
func (d *Dispatcher) Resume(ctx context.Context, agent string, by core.By) error {
	if err := d.whenReady(ctx); err != nil {
		return fmt.Errorf("resume agent %q: %w", agent, err)
	}
	if err := d.setPause(ctx, agent, false, task.KindAgentResumed, by); err != nil {
		return err
	}
	var free []int64
	for _, task := range d.held.all() {
		if task.paused && !d.pauses.has(task.agent.Value()) {
			free = append(free, task.seq)
		}
	}
	slices.Sort(free) // the oldest is queued first
	sideBySide(free, func(seq int64) { d.revisit(context.WithoutCancel(ctx), seq) })
	return nil
}

// setPause begins or ends a pause, with its event if that is news.
func (d *Dispatcher) setPause(ctx context.Context, agent string, paused bool, kind task.Kind, by core.By) error {
	d.pauses.changing.Lock()
	defer d.pauses.changing.Unlock()
	err := d.writer.update(ctx, func(tx *transaction) error {
		change := tx.Resume
		if paused {
			change = tx.Pause
		}
		news, err := change(agent)
		if err != nil || !news {
			return err
		}
		return tx.Log(event(task.Task{}, kind, with(by.Data(), "agent", agent)))
	})
	if err == nil {
		d.pauses.set(agent, paused)
	}
	return err
}

// turnAway holds what waits in the queue for an agent that is paused, many tasks
// in a commit. One by one, each by a worker, 90,000 took 90,000 commits.
func (x *executor) turnAway(ctx context.Context, agent string) {
	if !x.pauses.turning.TryLock() {
		return
	}
	defer x.pauses.turning.Unlock()
	for ctx.Err() == nil && x.pauses.has(agent) {
		items := x.queue.TakeBack(agent, manyMoves)
		if len(items) == 0 {
			return
		}
		sideBySide(items, func(it schedule.Item) {
			defer x.queue.Done()
			x.holdBack(ctx, it)
		})
	}
}

// holdBack holds a queued task of an agent that is paused.
func (x *executor) holdBack(ctx context.Context, it schedule.Item) {
	row, t, findings, err := x.loadQueued(ctx, it)
	if err == nil && row.State != task.Queued {
		return
	}
	cleared := false
	if err == nil {
		verdict := x.reader.judge(t, findings, time.Now())
		if cleared, err = x.reader.cleared(ctx, row, verdict); err == nil && !cleared {
			err = x.reader.apply(ctx, row, t, verdict)
		}
	}
	switch {
	case cleared:
		x.queue.Push(it) // it was resumed meanwhile
	case err != nil && ctx.Err() == nil:
		x.faults.report(judging, row, err)
		x.rest(ctx, it)
	}
}

// manyMoves is how many tasks are moved side by side, so that they share commits.
const manyMoves = 64

// sideBySide calls do for each of a list, for many at a time, in about its order.
func sideBySide[T any](list []T, do func(T)) {
	for part := range slices.Chunk(list, manyMoves) {
		var moving sync.WaitGroup
		for _, one := range part {
			moving.Go(func() { do(one) })
		}
		moving.Wait()
	}
}

// needlesslyPaused reports whether a task is held for a pause that is over.
func (x *executor) needlesslyPaused(row task.Task) bool {
	return row.State == task.Held && slices.Contains(row.Reasons, task.Paused) && !x.pauses.has(row.Agent)
}

// Drain pauses an agent, or Everyone, and returns when nothing of it runs any
// more, its results are durable, and who is told of them in messages is told, or
// with the cause of ctx.
func (d *Dispatcher) Drain(ctx context.Context, agent string, by core.By) error {
	if err := d.Pause(ctx, agent, by); err != nil {
		return err
	}
	err := d.queue.WaitReleased(ctx, agent)
	if err == nil {
		err = await(ctx, d.runs.find(func(it schedule.Item) bool { return agent == Everyone || it.Agent == agent }))
	}
	if err == nil {
		err = d.messenger.notifyQueue.await(ctx)
	}
	if err != nil {
		return fmt.Errorf("drain agent %q: %w", agent, err)
	}
	return nil
}
