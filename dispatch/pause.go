package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"mailboxd/internal/ledger"
)

// ErrNoAgent says that nobody configured an agent of that name, so that one who
// mistypes it does not believe another at rest.
var ErrNoAgent = errors.New("no such agent is configured; see: mailboxd agents")

// Everyone, in the place of an agent's id, means every agent.
const Everyone = ""

// pauses knows who may start nothing, as the ledger has it.
type pauses struct {
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
func (d *Dispatcher) Pause(ctx context.Context, agent string, by By) error {
	if agent != Everyone && !d.agents.Known(agent) {
		return fmt.Errorf("pause agent %q: %w", agent, ErrNoAgent)
	}
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		news, err := tx.Pause(agent)
		if err != nil || !news {
			return err
		}
		return tx.Log(event(ledger.Task{}, "agent.paused", with(by.data(), "agent", agent)))
	})
	if err != nil {
		return err
	}
	d.pauses.set(agent, true)
	d.queue.turnBack(agent)
	return nil
}

// Resume ends the pause that has exactly this name: that of Everyone does not
// end by resuming one agent, nor the other way round.
func (d *Dispatcher) Resume(ctx context.Context, agent string, by By) error {
	if err := d.whenReady(ctx); err != nil {
		return fmt.Errorf("resume agent %q: %w", agent, err)
	}
	err := d.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		news, err := tx.Resume(agent)
		if err != nil || !news {
			return err
		}
		return tx.Log(event(ledger.Task{}, "agent.resumed", with(by.data(), "agent", agent)))
	})
	if err != nil {
		return err
	}
	d.pauses.set(agent, false)
	for _, row := range d.held.all() {
		if d.needlesslyPaused(row) {
			d.revisit(context.WithoutCancel(ctx), row.Seq)
		}
	}
	return nil
}

// needlesslyPaused reports whether a task is held for a pause that is over.
func (d *Dispatcher) needlesslyPaused(row ledger.Task) bool {
	return row.State == ledger.Held && slices.Contains(row.Reasons, ledger.Paused) && !d.pauses.has(row.Agent)
}

// Drain pauses an agent, or Everyone, and returns when nothing of it runs any
// more, its results are durable, and who is told of them in messages is told, or
// with the cause of ctx.
func (d *Dispatcher) Drain(ctx context.Context, agent string, by By) error {
	if err := d.Pause(ctx, agent, by); err != nil {
		return err
	}
	err := d.queue.still(ctx, agent)
	if err == nil {
		err = await(ctx, d.runs.find(func(it item) bool { return agent == Everyone || it.agent == agent }))
	}
	if err == nil {
		err = d.untold.await(ctx)
	}
	if err != nil {
		return fmt.Errorf("drain agent %q: %w", agent, err)
	}
	return nil
}
