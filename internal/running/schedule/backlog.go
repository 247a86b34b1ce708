package schedule

import (
	"container/heap"
)

// A backlog holds the waiting items of one agent: the highest priority first, and in order of
// their push. It groups them by requester, so that a requester at its limit costs one check
// for each priority however many items it has.
type backlog struct {
	agent   string
	pushed  uint64             // number of all pushes
	lines   map[lineKey]*line  // none is empty
	ready   lineHeap           // all lines that aren't in atLimit
	atLimit map[string][]*line // lines of requesters without a free slot
}

func newBacklog(agent string) *backlog {
	return &backlog{agent: agent, lines: map[lineKey]*line{}, atLimit: map[string][]*line{}}
}

// push adds an item at the end of those with its priority.
func (b *backlog) push(it Item) {
	b.pushed++
	key := lineKey{it.Requester, it.Priority}
	l := b.lines[key]
	if l == nil {
		l = &line{lineKey: key}
		b.lines[key] = l
		defer heap.Push(&b.ready, l)
	}
	l.items = append(l.items, waitingItem{it.Seq, b.pushed})
}

// first returns the first item whose requester has a slot, and the number of lines it
// checked. It skips a requester without a slot until restore.
func (b *backlog) first(hasSlot func(requester string) bool) (it Item, ok bool, visited int) {
	for len(b.ready) > 0 {
		visited++
		l := b.ready[0]
		if hasSlot(l.requester) {
			return Item{Seq: l.waiting()[0].seq, Agent: b.agent, Requester: l.requester, Priority: l.priority}, true, visited
		}
		heap.Pop(&b.ready)
		b.atLimit[l.requester] = append(b.atLimit[l.requester], l)
	}
	return Item{}, false, visited
}

// restore makes first check a requester again.
func (b *backlog) restore(requester string) {
	for _, l := range b.atLimit[requester] {
		heap.Push(&b.ready, l)
	}
	delete(b.atLimit, requester)
}

// removeFirst removes the item that first returned, and reports whether the backlog is now
// empty.
func (b *backlog) removeFirst() (empty bool) {
	l := b.ready[0]
	if l.removeFirst() {
		heap.Pop(&b.ready)
		delete(b.lines, l.lineKey)
	} else {
		heap.Fix(&b.ready, 0)
	}
	return len(b.lines) == 0
}

// isLarge reports whether a backlog has memory for many lines.
func (b *backlog) isLarge() bool { return cap(b.ready) > fewItems }

// length counts the items.
func (b *backlog) length() (n int) {
	for _, l := range b.lines {
		n += len(l.waiting())
	}
	return n
}
