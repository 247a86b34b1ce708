package dispatch

import (
	"context"
	"sync"
)

// An item is an admitted task that waits for a worker. Its body stays in the
// ledger, so that a long queue costs little memory.
type item struct {
	seq       int64
	agent     string
	requester string
	start     *start  // it has begun already; nil: it has not
	ticket    *ticket // it was taken before there was a slot for it; nil: it was not
}

// A queue hands out the oldest task whose agent and requester have room.
type queue struct {
	room         chan struct{} // signalled when a full queue has room again
	slots        int           // runs at once, over all agents
	size         int           // at which intake pauses
	perRequester int           // 0: no limit
	limit        func(agent string) int

	mu      sync.Mutex        // guards what follows
	work    *sync.Cond        // for takers: there may be an item to take
	changed *sync.Cond        // for others: any of it
	waiting map[string]*items // by agent, oldest first
	handed  []item            // that have their slots
	claimed int               // items that have, and may be handed yet
	agents  map[string]int    // slots taken, by agent
	asking  map[string]int    // slots taken, by requester
	length  int               // items waiting
	parked  int               // tasks that wait for something else than a slot, and will be items again
	taken   int               // slots taken, over all agents
	early   early             // who was taken beyond that
	visited int               // items that next has looked at; for tests
	busy    int               // items taken and not done, or resting
	paused  bool              // intake found the queue full
}

func newQueue(slots, size, perRequester int, limit func(string) int) *queue {
	q := &queue{
		room:         make(chan struct{}, 1),
		slots:        slots,
		size:         size,
		perRequester: perRequester,
		limit:        limit,
		waiting:      map[string]*items{},
		agents:       map[string]int{},
		asking:       map[string]int{},
		early:        newEarly(),
	}
	q.work, q.changed = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

// push adds an item behind its agent's others.
func (q *queue) push(it item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[it.agent] == nil {
		q.waiting[it.agent] = &items{agent: it.agent}
	}
	q.waiting[it.agent].push(it)
	q.length++
	q.wakeNext()
}

// ahead returns up to n items of an agent that are next, the oldest first.
func (q *queue) ahead(agent string, n int) (seqs []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[agent] == nil {
		return nil
	}
	for at, it := range q.waiting[agent].all() {
		if at == n {
			break
		}
		seqs = append(seqs, it.seq)
	}
	return seqs
}

// take blocks for an item that may run now, and takes its slots, or for one that
// may get ready meanwhile. It returns false when ctx has ended, and nothing is to be
// handed any more.
func (q *queue) take(ctx context.Context) (item, bool) {
	defer context.AfterFunc(ctx, q.wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		over := ctx.Err() != nil
		if !over || len(q.handed) > 0 {
			if it, ok := q.next(); ok {
				q.wakeNext()
				return it, true
			}
		}
		if over && q.claimed == 0 {
			q.work.Signal() // whoever waited for that as well
			return item{}, false
		}
		q.work.Wait()
	}
}

// wakeNext wakes one who may find something to take, and who wakes the next one
// then. To wake all, with 64 of them, was 10 us of processor time a task. The
// caller holds mu.
func (q *queue) wakeNext() {
	if q.length+len(q.handed) > 0 {
		q.work.Signal()
	}
}

// next removes the oldest item that has room. The caller holds mu.
func (q *queue) next() (item, bool) {
	if len(q.handed) > 0 {
		it := q.handed[0]
		q.handed = q.handed[1:]
		return it, true
	}
	var best item
	var at int
	for agent, items := range q.waiting {
		if !q.hasSlot(agent) && !q.mayBeEarly(agent) {
			continue
		}
		for i, it := range items.all() {
			q.visited++
			if q.perRequester > 0 && q.asking[it.requester] >= q.perRequester {
				continue
			}
			if best.seq == 0 || it.seq < best.seq {
				best, at = it, i
			}
			break
		}
	}
	if best.seq == 0 {
		return item{}, false
	}
	q.remove(best.agent, at)
	if q.hasSlot(best.agent) {
		q.occupy(best)
	} else {
		best.ticket = q.admitEarly(best)
	}
	q.count(best)
	return best, true
}

// hasSlot reports whether a run of the agent may begin now. The caller holds mu.
func (q *queue) hasSlot(agent string) bool {
	return q.taken < q.slots && q.agents[agent] < q.limit(agent)
}

// occupy takes the slots of an item. The caller holds mu.
func (q *queue) occupy(it item) {
	q.agents[it.agent]++
	q.taken++
}

// count counts an item as taken. The caller holds mu.
func (q *queue) count(it item) {
	q.asking[it.requester]++
	q.busy++
}

// adopt takes the slots of a run that an earlier daemon began, whether or not
// there is room for it: it is there already.
func (q *queue) adopt(it item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.occupy(it)
	q.count(it)
}

// remove takes one item out of an agent's line. The caller holds mu.
func (q *queue) remove(agent string, at int) {
	if q.waiting[agent].remove(at) {
		delete(q.waiting, agent)
	}
	q.length--
	q.signalRoom()
}

// takeBack removes up to so many items of an agent, the oldest, which count as
// busy until done. They have no slots.
func (q *queue) takeBack(agent string, most int) (back []item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(back) < most && q.waiting[agent] != nil {
		for _, it := range q.waiting[agent].all() {
			back = append(back, it)
			break
		}
		q.remove(agent, 0)
		q.busy++
	}
	return back
}

// free gives back the slots of an item that take returned.
func (q *queue) free(it item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	drop(q.asking, it.requester)
	if q.leaveEarly(it) {
		drop(q.agents, it.agent)
		q.taken--
	}
	q.promote()
	q.wakeNext()
	q.changed.Broadcast()
}

// drop counts down and forgets a name that nobody uses any more.
func drop(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}

// done says that nothing more will come of an item that take returned.
func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.changed.Broadcast()
}

// rest counts something that will be pushed, after a pause, as busy; done ends it.
func (q *queue) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy++
}

// idle blocks until nothing waits and nothing is busy, or ctx ends.
func (q *queue) idle(ctx context.Context) error {
	defer context.AfterFunc(ctx, q.wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.length+q.busy > 0 && ctx.Err() == nil {
		q.changed.Wait()
	}
	return ctx.Err()
}

// still blocks until no slot of an agent, or of Everyone, is taken, or ctx ends.
func (q *queue) still(ctx context.Context, agent string) error {
	defer context.AfterFunc(ctx, q.wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for ctx.Err() == nil {
		if q.agents[agent]+q.early.of(agent) == 0 && (agent != Everyone || q.taken == 0) {
			return nil
		}
		q.changed.Wait()
	}
	return context.Cause(ctx)
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.promote()
	q.work.Broadcast()
	q.changed.Broadcast()
}
