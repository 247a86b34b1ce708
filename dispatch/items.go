package dispatch

import (
	"iter"
	"unique"
)

// items are those that wait for one agent, oldest first. They are what a
// backlog costs in memory: 16 bytes for each, in blocks that go as they empty.
// A slice took 40, up to twice that while it grew, and their names.
type items struct {
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
func (l *items) push(it item) {
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last]) == cap(l.blocks[last]) {
		size := leastBlock
		if last >= 0 {
			size = min(2*cap(l.blocks[last]), mostBlock)
		}
		l.blocks = append(l.blocks, make([]spot, 0, size))
		last++
	}
	l.blocks[last] = append(l.blocks[last], spot{it.seq, unique.Make(it.requester)})
}

// all yields the items, oldest first, with their numbers from the front.
func (l *items) all() iter.Seq2[int, item] {
	return func(yield func(int, item) bool) {
		n := 0
		for _, block := range l.blocks {
			for _, p := range block {
				if !yield(n, item{seq: p.seq, agent: l.agent, requester: p.requester.Value()}) {
					return
				}
				n++
			}
		}
	}
}

// remove takes the item with that number out, and reports whether it was the
// last one.
func (l *items) remove(at int) (empty bool) {
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
