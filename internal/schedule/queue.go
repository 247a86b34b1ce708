// Package schedule says which task runs next and when a task is looked at again.
// It keeps sequence numbers of tasks in memory and nothing else: the ledger has the
// tasks, and a restart fills the queues again.
package schedule

import (
	"context"
	"sync"
)

// AllAgents, in the place of an agent's id, means every agent.
const AllAgents = ""

// An Item is an admitted task that waits for a worker. Its body stays in the
// ledger, so that a long queue costs little memory.
type Item struct {
	Seq       int64
	Agent     string
	Requester string
	Begun     any           // what the taker goes on with when the task's start is durable already; nil: it has not begun
	slot      *prefetchSlot // the item was taken before it had a slot; nil: it has one
}

// A Queue hands out the oldest task whose agent and requester have room.
type Queue struct {
	limits
	room chan struct{} // signalled when a full queue has room again

	mu         sync.Mutex          // guards what follows
	work       *sync.Cond          // for takers: there may be an item to take
	changed    *sync.Cond          // for others: any of it
	waiting    map[string]*backlog // by agent, oldest first
	begun      []Item              // items that have their slots
	agents     map[string]int      // slots taken, by agent
	requesters map[string]int      // slots taken, by requester
	prefetch   prefetch            // items taken beyond that
	counts
	paused bool // intake found the queue full
}

// The limits of a queue do not change.
type limits struct {
	slots        int // runs at once, over all agents
	size         int // at which intake pauses
	perRequester int // runs at once of one requester; 0: no limit
	limit        func(agent string) int
}

// The counts of a queue are guarded by its mutex.
type counts struct {
	length   int // items waiting
	blocked  int // tasks that wait for something else than a slot, and will be items again
	reserved int // slots of items that may be pushed as begun
	taken    int // slots taken, over all agents
	busy     int // items taken and not done, and what AddBusy has counted
	visited  int // first items of requesters that next has looked at; for tests
}

// NewQueue returns an empty queue: so many slots over all agents, and limit of them
// for one agent and perRequester for one requester (0: no limit). Intake pauses at
// size waiting tasks. The limit of an agent may change between calls; Wake follows.
func NewQueue(slots, size, perRequester int, limit func(agent string) int) *Queue {
	q := &Queue{
		limits:     limits{slots: slots, size: size, perRequester: perRequester, limit: limit},
		room:       make(chan struct{}, 1),
		waiting:    map[string]*backlog{},
		agents:     map[string]int{},
		requesters: map[string]int{},
		prefetch:   newPrefetch(),
	}
	q.work, q.changed = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

// Push adds an item behind its agent's others.
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

// Peek returns up to n items of an agent that are next, the oldest first.
func (q *Queue) Peek(agent string, n int) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[agent] == nil {
		return nil
	}
	return q.waiting[agent].peek(n)
}

// Take blocks for an item that may run now, and takes its slots, or for one that
// may be prepared meanwhile. It returns false when ctx has ended and no reserved
// slot is left.
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
			q.work.Signal() // another taker waits for the same
			return Item{}, false
		}
		q.work.Wait()
	}
}

// wakeNext wakes one taker, which wakes the next one if it finds an item. To wake
// all, with 64 of them, was 10 us of processor time a task. The caller holds mu.
func (q *Queue) wakeNext() {
	if q.length+len(q.begun) > 0 {
		q.work.Signal()
	}
}

// next removes the oldest item that has room. The caller holds mu.
func (q *Queue) next() (Item, bool) {
	if len(q.begun) > 0 {
		it := q.begun[0]
		q.begun = q.begun[1:]
		return it, true
	}
	var best Item
	requesterHasSlot := q.requesterHasSlot // once, for it is allocated
	for agent, items := range q.waiting {
		if !q.hasSlot(agent) && !q.mayPrefetch(agent) {
			continue
		}
		it, ok, visited := items.first(requesterHasSlot)
		q.visited += visited
		if ok && (best.Seq == 0 || it.Seq < best.Seq) {
			best = it
		}
	}
	if best.Seq == 0 {
		return Item{}, false
	}
	q.removeFirst(best.Agent)
	if q.hasSlot(best.Agent) {
		q.occupy(best)
	} else {
		best.slot = q.addPrefetch(best)
	}
	q.count(best)
	return best, true
}

// hasSlot reports whether a run of the agent may begin now. The caller holds mu.
func (q *Queue) hasSlot(agent string) bool {
	return q.taken < q.slots && q.agents[agent] < q.limit(agent)
}

// requesterHasSlot reports whether another item of the requester may be taken. The
// caller holds mu.
func (q *Queue) requesterHasSlot(requester string) bool {
	return q.perRequester <= 0 || q.requesters[requester] < q.perRequester
}

// occupy takes the slots of an item. The caller holds mu.
func (q *Queue) occupy(it Item) {
	q.agents[it.Agent]++
	q.taken++
}

// count counts an item as taken. The caller holds mu.
func (q *Queue) count(it Item) {
	q.requesters[it.Requester]++
	q.busy++
}

// Adopt takes the slots of a run that an earlier daemon began, whether or not there
// is room for it: the run is there already.
func (q *Queue) Adopt(it Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.occupy(it)
	q.count(it)
}

// removeFirst removes the item that first returned for an agent. The caller holds mu.
func (q *Queue) removeFirst(agent string) {
	if q.waiting[agent].removeFirst() {
		delete(q.waiting, agent)
	}
	q.length--
	q.signalRoom()
}

// TakeBack removes up to most items of an agent, the oldest, which count as busy
// until Done. They have no slots.
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

// Release gives back the slots of an item that Take returned.
func (q *Queue) Release(it Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	decrement(q.requesters, it.Requester)
	if q.perRequester > 0 && q.requesterHasSlot(it.Requester) {
		for _, items := range q.waiting {
			items.restore(it.Requester)
		}
	}
	if q.leavePrefetch(it) {
		decrement(q.agents, it.Agent)
		q.taken--
	}
	q.promote()
	q.wakeNext()
	q.changed.Broadcast()
}

// decrement counts down and forgets a name whose count is 0.
func decrement(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}

// Done says that nothing more will come of an item that Take returned, or of what
// AddBusy has counted.
func (q *Queue) Done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.changed.Broadcast()
}

// AddBusy counts something as busy that is no item, such as an item that will be
// pushed after a pause. Done ends it.
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

// WaitReleased blocks until no slot of an agent, or of AllAgents, is taken, or ctx
// ends.
func (q *Queue) WaitReleased(ctx context.Context, agent string) error {
	defer context.AfterFunc(ctx, q.Wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for ctx.Err() == nil {
		if q.agents[agent]+q.prefetch.count(agent) == 0 && (agent != AllAgents || q.taken == 0) {
			return nil
		}
		q.changed.Wait()
	}
	return context.Cause(ctx)
}

// Wake has everybody who waits look again, for the limits of agents have changed.
func (q *Queue) Wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.promote()
	q.work.Broadcast()
	q.changed.Broadcast()
}
