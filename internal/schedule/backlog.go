package schedule

import (
	"container/heap"
	"slices"
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

// peek returns up to n next items of requesters that aren't skipped. In the heap, a line
// comes after its parent; in a line, an item comes after the one before it. So only few
// places can be next.
func (b *backlog) peek(n int) (seqs []int64) {
	type location struct{ line, at int }
	var next []location
	add := func(p location) {
		if p.line < len(b.ready) && p.at < len(b.ready[p.line].waiting()) {
			next = append(next, p)
		}
	}
	before := func(p, q location) bool {
		l, other := b.ready[p.line], b.ready[q.line]
		return l.before(l.waiting()[p.at], other, other.waiting()[q.at])
	}
	for add(location{0, 0}); len(next) > 0 && len(seqs) < n; {
		first := 0
		for i, p := range next {
			if before(p, next[first]) {
				first = i
			}
		}
		p := next[first]
		next = slices.Delete(next, first, first+1)
		seqs = append(seqs, b.ready[p.line].waiting()[p.at].seq)
		add(location{p.line, p.at + 1})
		if p.at == 0 {
			add(location{2*p.line + 1, 0})
			add(location{2*p.line + 2, 0})
		}
	}
	return seqs
}

// length counts the items.
func (b *backlog) length() (n int) {
	for _, l := range b.lines {
		n += len(l.waiting())
	}
	return n
}
