package schedule

import (
	"container/heap"
	"slices"
)

// A backlog holds the waiting items of one agent in order of their push. It groups them by
// requester, so that a requester at its limit costs one check however many items it has.
type backlog struct {
	agent   string
	pushed  uint64           // number of all pushes
	lines   map[string]*line // by requester; none is empty
	ready   lineHeap         // all lines that aren't in atLimit
	atLimit map[string]*line // lines of requesters without a free slot
}

func newBacklog(agent string) *backlog {
	return &backlog{agent: agent, lines: map[string]*line{}, atLimit: map[string]*line{}}
}

// push adds an item at the end.
func (b *backlog) push(it Item) {
	b.pushed++
	l := b.lines[it.Requester]
	if l == nil {
		l = &line{requester: it.Requester}
		b.lines[it.Requester] = l
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
			return Item{Seq: l.waiting()[0].seq, Agent: b.agent, Requester: l.requester}, true, visited
		}
		heap.Pop(&b.ready)
		b.atLimit[l.requester] = l
	}
	return Item{}, false, visited
}

// restore makes first check a requester again.
func (b *backlog) restore(requester string) {
	if l := b.atLimit[requester]; l != nil {
		delete(b.atLimit, requester)
		heap.Push(&b.ready, l)
	}
}

// removeFirst removes the item that first returned, and reports whether the backlog is now
// empty.
func (b *backlog) removeFirst() (empty bool) {
	l := b.ready[0]
	if l.removeFirst() {
		heap.Pop(&b.ready)
		delete(b.lines, l.requester)
	} else {
		heap.Fix(&b.ready, 0)
	}
	return len(b.lines) == 0
}

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
	item := func(p location) waitingItem { return b.ready[p.line].waiting()[p.at] }
	for add(location{0, 0}); len(next) > 0 && len(seqs) < n; {
		first := 0
		for i, p := range next {
			if item(p).order < item(next[first]).order {
				first = i
			}
		}
		p := next[first]
		next = slices.Delete(next, first, first+1)
		seqs = append(seqs, item(p).seq)
		add(location{p.line, p.at + 1})
		if p.at == 0 {
			add(location{2*p.line + 1, 0})
			add(location{2*p.line + 2, 0})
		}
	}
	return seqs
}
