// Package schedule decides which task runs next and when a task is checked again. It keeps
// only sequence numbers of tasks in memory: the ledger has the tasks, and a restart fills
// the queues again.
package schedule

import (
	"context"
	"errors"
	"sync"

	"mailboxd/internal/decisions/task"
)

// AllAgents stands for every agent instead of one agent's id.
const AllAgents = ""

// An Item is an admitted task that waits for a slot. Its body stays in the ledger, so a
// long queue needs little memory.
type Item struct {
	Seq       int64
	Agent     string
	Requester string
	Priority  int  // the highest is taken first
	Begun     any  // data for the taker if the task's start is durable already; nil: it hasn't begun
	Remote    bool // its run is on another machine, so that it takes no slot here
	Grant     any  // that Places.Take gave it; nil: none
}

// ErrNoRoom says that the room of a place has gone, so that its item waits for another one.
var ErrNoRoom = errors.New("no runner has room now")

// An UnfitError says why no runner with room may have the run of an item. The caller hears when one may.
type UnfitError struct{ Why string }

func (e *UnfitError) Error() string { return e.Why }

// An UnsentError says why the job of a run was not sent to its runner. It never will be.
type UnsentError struct {
	Err    error
	Failed int // how often that failed for its task, one time after another
}

func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnsentError) Unwrap() error { return e.Err }

// Places are on other machines. Their functions may be called concurrently, and call no method of the Queue.
type Places struct {
	IsRemote func(agent string) bool // its runs take places instead of slots
	Free     func(agent string) bool // there is a place for a run
	Take     func(agent string) any  // takes a place; nil: there is none any more
}

// A Queue hands out the task with the highest priority whose agent and requester have a free
// slot, and of those with the same priority the oldest.
type Queue struct {
	limits
	room     chan struct{} // signalled when a full queue has room again
	Released func()        // called when slots became free; set before the first Push, nil: nothing is called
	Places   *Places       // set before the first Push, nil: no agent is remote

	mu         sync.Mutex          // guards the fields below
	work       *sync.Cond          // for takers: an item may be available
	changed    *sync.Cond          // for other waiters: any change
	waiting    map[string]*backlog // by agent
	begun      []Item              // begun items, with their slots
	agents     map[string]int      // slots taken, by agent
	requesters map[string]int      // slots taken, by requester
	counts
}

// limits are fixed when the queue is made.
type limits struct {
	slots        int // concurrent runs, over all agents
	size         int // of the queue, at which intake pauses
	perRequester int // concurrent runs of one requester; 0: no limit
	limit        func(agent string) int
}

// counts are guarded by the queue's mutex.
type counts struct {
	length   int  // waiting items
	blocked  int  // tasks that wait for something other than a slot
	reserved int  // slots of items that may be pushed as begun
	taken    int  // slots taken, over all agents
	remote   int  // items taken that are remote
	busy     int  // items taken and not done, and those of AddBusy
	visited  int  // requesters that next has checked; for tests
	paused   bool // intake found the queue full
}

// NewQueue returns an empty queue. Slots is the number of slots over all agents, limit
// returns the slots of one agent, and perRequester is the limit of one requester (0: no
// limit). Intake pauses at size waiting tasks. The limit of an agent may change; call Wake
// then.
func NewQueue(slots, size, perRequester int, limit func(agent string) int) *Queue {
	q := &Queue{
		limits:     limits{slots: slots, size: size, perRequester: perRequester, limit: limit},
		room:       make(chan struct{}, 1),
		waiting:    map[string]*backlog{},
		agents:     map[string]int{},
		requesters: map[string]int{},
	}
	q.work, q.changed = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

// Push appends an item to those of its agent and its priority.
func (q *Queue) Push(it Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[it.Agent] == nil {
		q.waiting[it.Agent] = newBacklog(it.Agent)
	}
	q.waiting[it.Agent].push(it)
	q.length++
	q.wakeNext()
}

// Load returns how many runs of an agent have a slot or wait for one.
func (q *Queue) Load(agent string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	load := q.agents[agent]
	if items := q.waiting[agent]; items != nil {
		load += items.length()
	}
	return load
}

// Take blocks for an item that can run now, and takes its slots. It returns false when ctx has
// ended and no slot is reserved.
func (q *Queue) Take(ctx context.Context) (Item, bool) {
	defer context.AfterFunc(ctx, q.Wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		over := ctx.Err() != nil
		if !over || len(q.begun) > 0 {
			if it, ok := q.next(); ok {
				q.wakeNext()
				return it, true
			}
		}
		if over && q.reserved == 0 {
			q.work.Signal() // another taker waits for the end too
			return Item{}, false
		}
		q.work.Wait()
	}
}

// wakeNext wakes one taker; if it finds an item, it wakes the next one. Waking all 64 took
// 10 us of CPU time a task. The caller holds mu.
func (q *Queue) wakeNext() {
	if q.length+len(q.begun) > 0 {
		q.work.Signal()
	}
}

// next removes the first item that has a slot, and takes it. The caller holds mu.
func (q *Queue) next() (Item, bool) {
	if len(q.begun) > 0 {
		it := q.begun[0]
		q.begun = q.begun[1:]
		return it, true
	}
	best, ok := q.best()
	for ok && best.Remote && best.Grant == nil {
		if best.Grant = q.Places.Take(best.Agent); best.Grant == nil {
			best, ok = q.best() // the place has gone meanwhile
		}
	}
	if !ok {
		return Item{}, false
	}
	q.removeFirst(best.Agent)
	q.occupy(best)
	return best, true
}

// best returns the item that is taken next. The caller holds mu.
func (q *Queue) best() (Item, bool) {
	var best Item
	requesterHasSlot := q.requesterHasSlot // once, because a method value is allocated
	for agent, items := range q.waiting {
		if !q.hasSlot(agent) {
			continue
		}
		it, ok, visited := items.first(requesterHasSlot)
		q.visited += visited
		if ok && (best.Seq == 0 || it.before(best)) {
			best = it
		}
	}
	best.Remote = best.Seq != 0 && q.isRemote(best.Agent)
	return best, best.Seq != 0
}

func (q *Queue) isRemote(agent string) bool { return q.Places != nil && q.Places.IsRemote(agent) }

// before reports whether an item comes before one of another agent.
func (it Item) before(other Item) bool { return it.position().Compare(other.position()) < 0 }

func (it Item) position() task.Position { return task.Position{Seq: it.Seq, Priority: it.Priority} }

// hasSlot reports whether a run of the agent can begin now. The caller holds mu.
func (q *Queue) hasSlot(agent string) bool {
	if q.isRemote(agent) {
		return q.agents[agent] < q.limit(agent) && q.Places.Free(agent)
	}
	return q.taken < q.slots && q.agents[agent] < q.limit(agent)
}

// requesterHasSlot reports whether the requester is below its limit. The caller holds mu.
func (q *Queue) requesterHasSlot(requester string) bool {
	return q.perRequester <= 0 || q.requesters[requester] < q.perRequester
}

// occupy takes the slots of an item, which is busy from then on. The caller holds mu.
func (q *Queue) occupy(it Item) {
	q.agents[it.Agent]++
	if it.Remote {
		q.remote++
	} else {
		q.taken++
	}
	q.requesters[it.Requester]++
	q.busy++
}

// Adopt takes the slots of a run that an earlier daemon began, even beyond the limits: the
// run exists already.
func (q *Queue) Adopt(it Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.occupy(it)
}

// removeFirst removes the item that first returned for an agent. The caller holds mu.
func (q *Queue) removeFirst(agent string) {
	if q.waiting[agent].removeFirst() && q.waiting[agent].isLarge() {
		delete(q.waiting, agent) // its memory
	}
	q.length--
	q.signalRoom()
}

// TakeBack removes up to most items of an agent, the next one first. They have no slots and
// count as busy until Done.
func (q *Queue) TakeBack(agent string, most int) (back []Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.waiting[agent]
	if items == nil {
		return nil
	}
	for requester := range items.atLimit {
		items.restore(requester)
	}
	for len(back) < most {
		it, ok, _ := items.first(func(string) bool { return true })
		if !ok {
			break
		}
		back = append(back, it)
		q.removeFirst(agent)
		q.busy++
	}
	return back
}

// Release frees the slots of an item that Take returned, and calls Released.
func (q *Queue) Release(it Item) {
	q.mu.Lock()
	decrement(q.requesters, it.Requester)
	if q.perRequester > 0 && q.requesterHasSlot(it.Requester) {
		for _, items := range q.waiting {
			items.restore(it.Requester)
		}
	}
	decrement(q.agents, it.Agent)
	if it.Remote {
		q.remote--
	} else {
		q.taken--
	}
	q.wakeNext()
	q.changed.Broadcast()
	q.mu.Unlock()
	if q.Released != nil {
		q.Released()
	}
}

// decrement subtracts one, and removes a name whose count is 0.
func decrement(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}

// Done ends the busy time of an item from Take, or of a call of AddBusy.
func (q *Queue) Done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.changed.Broadcast()
}

// AddBusy counts something that isn't an item as busy, such as an item in a pause. Done
// ends it.
func (q *Queue) AddBusy() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy++
}

// WaitIdle blocks until nothing waits and nothing is busy, or ctx ends.
func (q *Queue) WaitIdle(ctx context.Context) error {
	defer context.AfterFunc(ctx, q.Wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.length+q.busy > 0 && ctx.Err() == nil {
		q.changed.Wait()
	}
	return ctx.Err()
}

// WaitReleased blocks until an agent, or AllAgents, has no slot taken, or ctx ends.
func (q *Queue) WaitReleased(ctx context.Context, agent string) error {
	defer context.AfterFunc(ctx, q.Wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for ctx.Err() == nil {
		if q.agents[agent] == 0 && (agent != AllAgents || q.taken+q.remote == 0) {
			return nil
		}
		q.changed.Wait()
	}
	return context.Cause(ctx)
}

// WakeOne wakes one taker, after a place became free. It wakes the next one if it finds an item.
func (q *Queue) WakeOne() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakeNext()
}

// Wake wakes all waiting callers, after the limits of agents have changed.
func (q *Queue) Wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work.Broadcast()
	q.changed.Broadcast()
}
