package mailbox

import (
	"maps"
	"slices"
)

// mostLengths limits the work of looking for the original of a file.
const mostLengths = 64

// fingerprints are the first blocks of all files with a cursor. A file that begins like one
// of them is a copy.
type fingerprints map[int64]map[string]int // number of files by length, then by hash

func newFingerprints(cursors []Cursor) fingerprints {
	h := fingerprints{}
	for _, c := range cursors {
		h.add(c)
	}
	return h
}

func (h fingerprints) add(c Cursor) {
	if c.Offset == 0 {
		return // nothing was read of it
	}
	if h[c.block()] == nil {
		h[c.block()] = map[string]int{}
	}
	h[c.block()][string(c.Head)]++
}

func (h fingerprints) remove(c Cursor) {
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

// match reports whether a file that starts with block is a copy. It tries only the longest
// lengths: a copy usually has most of the read part of the original.
func (h fingerprints) match(block []byte) bool {
	lengths := slices.DeleteFunc(slices.Collect(maps.Keys(h)), func(n int64) bool { return n > int64(len(block)) })
	slices.Sort(lengths)
	for _, n := range lengths[max(0, len(lengths)-mostLengths):] {
		if h[n][string(hash(block[:n]))] > 0 {
			return true
		}
	}
	return false
}
