package dispatch

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// A router chooses the agents of held tasks that name none, in the order of the queue. It chooses when an
// agent has a free slot, and not earlier, so that the best agent of that moment gets the task.
// One goroutine decides about all tasks: no two of them take the same slot.
type router struct {
	*outbox.Base
	inbox   *inboxes
	changed chan struct{} // signalled when a pass is due

	mu   sync.Mutex // guards next
	next *pass
}

// A pass says which of the tasks that wait for an agent are looked at even if no agent is free.
type pass struct {
	due bool // those whose time has come
	all bool // each
}

func newRouter(b *outbox.Base, inbox *inboxes) *router {
	return &router{Base: b, inbox: inbox, changed: make(chan struct{}, 1)}
}

// wake has the router look at the tasks that wait for an agent, if one is free. The engine is busy
// until then.
func (rt *router) wake() { rt.ask(pass{}) }

// wakeDue is wake, and also looks at the tasks whose time has come.
func (rt *router) wakeDue() { rt.ask(pass{due: true}) }

// wakeAll is wake, and looks at each task.
func (rt *router) wakeAll() { rt.ask(pass{all: true}) }

func (rt *router) ask(p pass) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.next == nil {
		rt.next = &pass{}
		rt.Queue.AddBusy()
		rt.changed <- struct{}{}
	}
	rt.next.due, rt.next.all = rt.next.due || p.due, rt.next.all || p.all
}

// take begins the next pass.
func (rt *router) take() (p pass) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	p, rt.next = *rt.next, nil
	return p
}

// serve chooses agents until ctx ends.
func (rt *router) serve(ctx, work context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-rt.changed:
		}
		if err := rt.choose(ctx, work, rt.take()); err != nil && ctx.Err() == nil {
			rt.FaultLog.Report(store.Judging, task.Task{}, err)
			time.AfterFunc(store.RetryPause, rt.wakeDue)
		}
		rt.Queue.Done()
	}
}

// choose decides about each task that waits for an agent. A task for which none is free does not
// delay the tasks behind it. The loads are read before the tasks: an agent that becomes free later
// counts in the next pass, or a task would get it before those ahead of it.
func (rt *router) choose(ctx, work context.Context, p pass) error {
	if first, err := rt.Ledger.Held(ctx, envelope.Everybody, store.BeforeAll, 1); err != nil || len(first) == 0 {
		return err // the usual case
	}
	before := map[string]int{}
	for _, id := range rt.Agents.Protocol.Agents() {
		before[id] = rt.load(id)
	}
	load := func(agent string) int { return max(before[agent], rt.load(agent)) }
	chooser := store.Chooser{Reader: rt.Reader, UsedUp: map[string]string{}}
	now := time.Now()
	for row, err := range rt.Reader.HeldOf(ctx, envelope.Everybody) {
		if err != nil {
			return err
		}
		free := rt.anyFree(load)
		if !free && !p.due && !p.all || ctx.Err() != nil {
			return nil
		}
		isDue := p.due && !row.Until.IsZero() && !row.Until.After(now)
		if !free && !isDue && !p.all || !core.Unbound(row) {
			continue
		}
		if row, err := rt.decide(work, chooser, row.Seq, load); err != nil && ctx.Err() == nil {
			rt.FaultLog.Report(store.Judging, row, err)
			rt.Timers.After(row.Seq, store.RetryPause)
		}
	}
	return nil
}

// decide chooses the agent of a task, or refuses the task, or sets when to decide again.
func (rt *router) decide(ctx context.Context, ch store.Chooser, seq int64, load func(agent string) int) (task.Task, error) {
	row, t, findings, err := rt.Reader.Load(ctx, seq)
	if err != nil || !core.Unbound(row) || len(core.Lasting(row.Reasons)) > 0 {
		return row, err
	}
	r, request, v, err := ch.Choose(ctx, row, t, findings, load)
	if err != nil {
		return row, err
	}
	if r.Selected == "" {
		return row, rt.Reader.Apply(ctx, row, t, v)
	}
	record, err := r.JSON()
	if err != nil {
		return row, err
	}
	fault.Point("route")
	rt.RecentRuns.Performance.Chosen(r.Selected, r.At)
	rt.Info(row).Str("chosen", r.Selected).Str("reason", r.Reason).Msg("agent chosen")
	command := &core.Route{Task: seq, Seen: core.See(row), Agent: r.Selected, Request: request, Verdict: v, Record: record}
	_, err = rt.Writer.Decide(ctx, store.TaskLoader(seq, false, true), command)
	if errors.Is(err, core.ErrStale) {
		return row, nil
	}
	if err == nil && rt.Agents.Inbox(r.Selected).File != "" {
		_, err = rt.inbox.deliver(ctx, seq) // at once, so that it counts as a task of the inbox from here on
	}
	return row, err
}

// anyFree reports whether an agent may start another task, by the load it has.
func (rt *router) anyFree(load func(agent string) int) bool {
	for _, id := range rt.Agents.Protocol.Agents() {
		isRun := rt.Agents.Inbox(id).File == ""
		if !rt.Pauses.Blocks(id) && (!isRun || load(id) < rt.Agents.Limit(id)) {
			return true
		}
	}
	return false
}

// load returns how many tasks an agent has that run or may start. An agent that fetches its
// tasks has those of its inbox; while they can't be counted, it has none that is free.
func (rt *router) load(agent string) int {
	if rt.Agents.Inbox(agent).File == "" {
		return rt.Queue.Load(agent)
	}
	n, err := rt.Ledger.CountHeld(context.Background(), agent, task.Waiting, "")
	if err != nil {
		return math.MaxInt
	}
	return n
}
