package schedule

import "slices"

// A line holds the items of one requester with one priority that wait for one agent, in order.
type line struct {
	lineKey
	items []waitingItem
	head  int // index of the first item that isn't removed
}

// A lineKey names a line of an agent.
type lineKey struct {
	requester string
	priority  int
}

// A waitingItem is an Item without its agent, its requester and its priority.
type waitingItem struct {
	seq   int64
	order uint64 // its number among the pushes of the agent
}

func (l *line) waiting() []waitingItem { return l.items[l.head:] }

// before reports whether an item of a line comes before an item of another line: the one with
// the higher priority does, and of two with the same priority the one that was pushed first.
func (l *line) before(it waitingItem, other *line, others waitingItem) bool {
	if l.priority != other.priority {
		return l.priority > other.priority
	}
	return it.order < others.order
}

// fewItems is the length below which a line isn't copied to free memory.
const fewItems = 64

// removeFirst removes the first item, and reports whether the line is now empty.
func (l *line) removeFirst() (empty bool) {
	l.head++
	if l.head >= fewItems && 2*l.head >= len(l.items) {
		l.items, l.head = slices.Clone(l.items[l.head:]), 0
	}
	return l.head == len(l.items)
}

// lineHeap orders lines by their first items.
type lineHeap []*line

func (h lineHeap) Len() int { return len(h) }
func (h lineHeap) Less(i, j int) bool {
	return h[i].before(h[i].waiting()[0], h[j], h[j].waiting()[0])
}
func (h lineHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *lineHeap) Push(x any)   { *h = append(*h, x.(*line)) }
func (h *lineHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
