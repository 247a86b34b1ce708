package dispatch

import (
	"context"
	"errors"
	"sync"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// A router chooses the agents of held tasks that name none, in the order of the queue. It chooses when an
// agent has a free slot, and not earlier, so that the best agent of that moment gets the task.
// One goroutine decides about all tasks: no two of them take the same slot.
type router struct {
	*outbox.Base
	due chan struct{} // signalled when agents may have become free

	mu       sync.Mutex       // guards the fields below
	woken    bool             // a pass is due
	dueTasks map[int64]bool   // tasks to decide about even if no agent is free
	assigned map[int64]string // tasks on their way to the inbox of an agent
}

func newRouter(b *outbox.Base) *router {
	return &router{Base: b, due: make(chan struct{}, 1), dueTasks: map[int64]bool{}, assigned: map[int64]string{}}
}

// wake has the router look at all tasks that wait for an agent. The engine is busy until then.
func (rt *router) wake() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.woken || !rt.Held.AnyUnbound() {
		return
	}
	rt.woken = true
	rt.Queue.AddBusy()
	rt.due <- struct{}{}
}

// wakeFor is wake for a task whose time has come, also if no agent is free.
func (rt *router) wakeFor(seq int64) {
	rt.mu.Lock()
	rt.dueTasks[seq] = true
	rt.mu.Unlock()
	rt.wake()
}

// take begins a pass, and returns the tasks to decide about in any case.
func (rt *router) take() map[int64]bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	due := rt.dueTasks
	rt.woken, rt.dueTasks = false, map[int64]bool{}
	return due
}

// serve chooses agents until ctx ends.
func (rt *router) serve(ctx, work context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-rt.due:
		}
		rt.pass(ctx, work, rt.take())
		rt.Queue.Done()
	}
}

// pass decides about each task that waits for an agent. A task for which none is free does not
// delay the tasks behind it. Without a free agent only the tasks that are due are looked at.
// The loads are read before the tasks: an agent that becomes free later counts in the next pass,
// or a task would get it before those ahead of it.
func (rt *router) pass(ctx, work context.Context, due map[int64]bool) {
	before := map[string]int{}
	for _, id := range rt.Agents.Protocol.Agents() {
		before[id] = rt.load(id)
	}
	load := func(agent string) int { return max(before[agent], rt.load(agent)) }
	for _, seq := range rt.Held.Unbound() {
		if ctx.Err() != nil {
			return
		}
		rt.sweep()
		if !due[seq] && !rt.anyFree(load) {
			continue
		}
		if row, err := rt.decide(work, seq, load); err != nil && ctx.Err() == nil {
			rt.FaultLog.Report(store.Judging, row, err)
			rt.Timers.After(seq, store.RetryPause)
		}
	}
}

// decide chooses the agent of a task, or refuses the task, or sets when to decide again.
func (rt *router) decide(ctx context.Context, seq int64, load func(agent string) int) (task.Task, error) {
	row, t, findings, err := rt.Reader.Load(ctx, seq)
	if err != nil || !core.Unbound(row) || len(core.Lasting(row.Reasons)) > 0 {
		return row, err
	}
	r, request, v, err := store.Chooser{Reader: rt.Reader}.Choose(ctx, row, t, findings, load)
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
	if rt.Agents.Inbox(r.Selected).File != "" {
		rt.assign(seq, r.Selected)
	}
	fault.Point("route")
	rt.RecentRuns.Performance.Chosen(r.Selected, r.At)
	rt.Info(row).Str("chosen", r.Selected).Str("reason", r.Reason).Msg("agent chosen")
	command := &core.Route{Task: seq, Seen: core.See(row), Agent: r.Selected, Request: request, Verdict: v, Record: record}
	_, err = rt.Writer.Decide(ctx, store.TaskLoader(seq, false, true), command)
	if errors.Is(err, core.ErrStale) {
		err = nil
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
// tasks has those of its inbox.
func (rt *router) load(agent string) int {
	if rt.Agents.Inbox(agent).File == "" {
		return rt.Queue.Load(agent)
	}
	return rt.Held.InInbox(agent, rt.underway(agent))
}

// assign records a task that an agent will find in its inbox.
func (rt *router) assign(seq int64, agent string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.assigned[seq] = agent
}

// underway returns the tasks that are on their way to the inbox of an agent, and perhaps some that
// are in it.
func (rt *router) underway(agent string) (seqs []int64) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for seq, to := range rt.assigned {
		if to == agent && rt.isUnderway(seq) {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// isUnderway reports whether an assigned task is queued for its inbox, or in it.
func (rt *router) isUnderway(seq int64) bool {
	row, err := rt.Ledger.Task(context.Background(), seq)
	return err != nil || row.State == task.Queued || row.State == task.Waiting
}

// sweep forgets the assigned tasks that the held tasks have as those of an inbox, or that are
// elsewhere. Only the goroutine of the router does that: a task that it assigns is elsewhere until
// its transaction.
func (rt *router) sweep() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for seq := range rt.assigned {
		if rt.Held.IsInInbox(seq) || !rt.isUnderway(seq) {
			delete(rt.assigned, seq)
		}
	}
}
