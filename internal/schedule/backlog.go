package schedule

import (
	"iter"
	"unique"
)

// A backlog is the items that wait for one agent, oldest first. It is what a
// backlog costs in memory: 16 bytes for each, in blocks that go as they empty.
// A slice took 40, up to twice that while it grew, and their names.
type backlog struct {
	agent  string
	blocks [][]spot // none is empty
}

// A spot is an item without its agent.
type spot struct {
	seq       int64
	requester unique.Handle[string] // there are many items of one requester
}

// The first blocks are small, for most agents have few.
const (
	leastBlock = 8
	mostBlock  = 512
)

// push adds an item at the end.
func (l *backlog) push(it Item) {
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last]) == cap(l.blocks[last]) {
		size := leastBlock
		if last >= 0 {
			size = min(2*cap(l.blocks[last]), mostBlock)
		}
		l.blocks = append(l.blocks, make([]spot, 0, size))
		last++
	}
	l.blocks[last] = append(l.blocks[last], spot{it.Seq, unique.Make(it.Requester)})
}

// all yields the items, oldest first, with their numbers from the front.
func (l *backlog) all() iter.Seq2[int, Item] {
	return func(yield func(int, Item) bool) {
		n := 0
		for _, block := range l.blocks {
			for _, p := range block {
				if !yield(n, Item{Seq: p.seq, Agent: l.agent, Requester: p.requester.Value()}) {
					return
				}
				n++
			}
		}
	}
}

// remove takes the item with that number out, and reports whether it was the
// last one.
func (l *backlog) remove(at int) (empty bool) {
	b := 0
	for at >= len(l.blocks[b]) {
		at -= len(l.blocks[b])
		b++
	}
	block := l.blocks[b]
	if at == 0 {
		block = block[1:]
	} else {
		block = append(block[:at], block[at+1:]...)
	}
	if l.blocks[b] = block; len(block) == 0 {
		l.blocks = append(l.blocks[:b], l.blocks[b+1:]...)
	}
	return len(l.blocks) == 0
}
