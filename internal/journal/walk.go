package journal

import (
	"errors"
	"fmt"
	"os"
)

// A Position is the end of a group.
type Position struct {
	N       uint64 // the last event of the group; 0: the beginning of the journal
	Hash    Hash   // of the chain up to it
	Segment int
	Offset  int64
}

// same reports whether two positions are the end of the same group.
func (p Position) same(other Position) bool { return p.N == other.N && p.Hash == other.Hash }

// ErrNoPosition says that no group ends at a position: the journal ends before it, or
// a purge or a failed write has moved it.
var ErrNoPosition = errors.New("no group ends there")

// A walk reads a journal from a position to its end, and checks the chain.
type walk struct {
	dir     string
	last    int      // the last segment
	s       *segment // the one that is read
	resume  int64    // where in it the group after at begins
	at      Position // the last whole group
	anchors []anchor // still to be met

	group     group
	lastGroup int64 // where the group of at begins, or ends if it was not read
	torn      int64 // bytes behind at
	skipped   int64 // bytes of failed writes that were retried in the next segment
}

// An anchor is a position that has to be in the journal.
type anchor struct {
	Position
	name string // who has it
}

// newWalk begins a walk behind a position. The walk has to be closed.
func newWalk(dir string, from Position) (*walk, error) {
	last, err := lastSegment(dir)
	w := &walk{dir: dir, last: last, at: from, resume: from.Offset, lastGroup: from.Offset}
	if err != nil || from == (Position{}) {
		return w, err
	}
	there := false
	if w.s, err = openSegment(dir, from.Segment); err == nil {
		there, err = w.s.endsAt(from)
	}
	if errors.Is(err, os.ErrNotExist) || err == nil && !there {
		err = fmt.Errorf("event %d in %s: %w", from.N, segmentName(from.Segment), ErrNoPosition)
	}
	if err == nil {
		w.s.seek(from.Offset)
	}
	return w, err
}

func (w *walk) close() (err error) {
	if w.s != nil {
		err = w.s.file.Close()
		w.s = nil
	}
	return err
}

// run reads to the end and hands each whole group to each.
func (w *walk) run(each func(*group) error) error {
	more, err := true, w.checkAnchors()
	if err == nil && w.s == nil {
		more, err = w.enter(nil)
	}
	for more && err == nil {
		more, err = w.read(each)
	}
	if err == nil && len(w.anchors) > 0 {
		a := w.anchors[0]
		err = &DamageError{segmentName(max(w.at.Segment, 1)), a.N, a.N, fmt.Sprintf("%s has it, and the journal ends with event %d", a.name, w.at.N)}
	}
	return err
}

// read reads the rest of a segment and enters the next one.
func (w *walk) read(each func(*group) error) (more bool, err error) {
	final := w.s.number < w.last
	damage, err := w.groups(each)
	if err != nil {
		return false, err
	}
	if final {
		return w.enter(damage)
	}
	if w.last, err = lastSegment(w.dir); err != nil {
		return false, err
	}
	if w.s.number < w.last { // groups may have come to this one before the next one began
		w.s.seek(w.resume)
		return true, w.s.look()
	}
	return false, w.end(damage, groupPrefix(w.at.N+1))
}

// groups reads whole groups until there are no more, and returns why what comes next
// is none.
func (w *walk) groups(each func(*group) error) (damage, err error) {
	for {
		ok, err := w.s.group(&w.group, w.at)
		if isDamage(err) {
			return err, nil
		}
		if err != nil || !ok {
			return nil, err
		}
		if err := each(&w.group); err != nil {
			return nil, err
		}
		w.pass()
		if err := w.checkAnchors(); err != nil {
			return nil, err
		}
	}
}

// pass has the walk go on behind its group.
func (w *walk) pass() {
	w.at, w.lastGroup, w.resume = w.group.end, w.group.offset, w.group.end.Offset
}

// checkAnchors compares the position with the anchors up to it.
func (w *walk) checkAnchors() error {
	for len(w.anchors) > 0 && w.anchors[0].N <= w.at.N {
		a := w.anchors[0]
		passed := w.at.N > a.N && w.lastGroup < w.at.Offset // it is inside a group
		if w.at.N == a.N && w.at.Hash != a.Hash || passed {
			return &DamageError{segmentName(w.at.Segment), a.N, a.N, a.name + " has another hash of it"}
		}
		w.anchors = w.anchors[1:]
	}
	return nil
}

// enter opens the next segment. damage is what the one before ends with, if that is
// no whole group. It returns false if there is none, or none that has begun.
func (w *walk) enter(damage error) (more bool, err error) {
	number, left := 1, int64(0)
	if w.s != nil {
		number, left = w.s.number+1, w.s.size-w.resume
	}
	if damage == nil && w.at.Segment != number-1 {
		return false, w.s.damage(w.at.N+1, w.at.N+1, "the segment has no whole group, and is not the last")
	}
	if err := w.close(); err != nil {
		return false, err
	}
	w.s, err = openSegment(w.dir, number)
	if errors.Is(err, os.ErrNotExist) && number >= w.last {
		return false, nil // or its first group failed, and it was removed
	}
	if err != nil {
		return false, err
	}
	w.resume = 0
	h, err := w.s.header()
	if isDamage(err) {
		return false, w.end(err, []byte(groupBegin))
	}
	w.resume = w.s.offset()
	after := Position{N: h.n, Hash: h.hash}
	if number == 1 && h.hash == (Hash{}) { // what is imported begins behind its own numbers
		w.at.N = h.n
	}
	switch {
	case err != nil:
		return false, err
	case w.at.same(after) && (damage == nil || h.retry):
		w.skipped += left
		return true, nil
	case damage != nil:
		return false, damage
	case h.n > w.at.N:
		return false, &DamageError{segmentName(w.at.Segment), w.at.N + 1, h.n, "missing at the end of the segment"}
	case !h.retry || h.n == w.at.N:
		return false, w.s.damage(h.n+1, h.n+1, fmt.Sprintf("the segment does not follow the group that ends with event %d", w.at.N))
	}
	return w.enterAgain(after)
}

// enterAgain enters a segment that begins with the last group once more, and skips
// that.
func (w *walk) enterAgain(after Position) (more bool, err error) {
	ok, err := w.s.group(&w.group, after)
	if isDamage(err) || err == nil && !ok {
		return false, w.end(err, groupPrefix(after.N+1))
	}
	if err == nil && !w.at.same(w.group.end) {
		err = w.s.damage(after.N+1, w.group.end.N, "they differ from those at the end of the segment before")
	}
	if err != nil {
		return false, err
	}
	w.skipped += int64(len(w.group.text))
	w.pass()
	return true, nil
}

// end returns nil if the segment is the last and has no damage but a torn tail: what
// is left of a group whose last line begins with a prefix.
func (w *walk) end(damage error, prefix []byte) error {
	if damage == nil {
		return nil
	}
	w.s.seek(w.resume)
	torn, err := w.s.torn(prefix)
	if err == nil && (!torn || w.s.number < w.last) {
		return damage
	}
	w.torn = w.s.size - w.resume
	return err
}
