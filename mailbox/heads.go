package mailbox

import (
	"maps"
	"slices"
)

// mostLengths bounds the work that looking for the original of a file is.
const mostLengths = 64

// heads are the first blocks of all files we have a cursor for. A file that
// begins like one of them is a copy of it, under whatever name.
type heads map[int64]map[string]int // by length, then by hash: how many files begin so

func newHeads(cursors []Cursor) heads {
	h := heads{}
	for _, c := range cursors {
		h.add(c)
	}
	return h
}

func (h heads) add(c Cursor) {
	if c.Offset == 0 {
		return // nothing was read of it
	}
	if h[c.block()] == nil {
		h[c.block()] = map[string]int{}
	}
	h[c.block()][string(c.Head)]++
}

func (h heads) remove(c Cursor) {
	if c.Offset == 0 {
		return
	}
	same := h[c.block()]
	if same[string(c.Head)]--; same[string(c.Head)] <= 0 {
		delete(same, string(c.Head))
	}
	if len(same) == 0 {
		delete(h, c.block())
	}
}

// begin reports whether a file that starts with block is a copy. Of many
// lengths it tries the longest: most of a copy is what was read of the original.
func (h heads) begin(block []byte) bool {
	lengths := slices.DeleteFunc(slices.Collect(maps.Keys(h)), func(n int64) bool { return n > int64(len(block)) })
	slices.Sort(lengths)
	for _, n := range lengths[max(0, len(lengths)-mostLengths):] {
		if h[n][string(hash(block[:n]))] > 0 {
			return true
		}
	}
	return false
}
