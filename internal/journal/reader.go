package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrPurged says that a purge has removed a body.
var ErrPurged = errors.New("the body was purged")

// Replay hands the events behind a position to each, group by group, and returns the
// end of the last whole group. It checks the chain and the head. The zero Position is the
// beginning. What an event refers to is valid until each returns. A Position that a
// purge or a failed write has moved is ErrNoPosition.
func Replay(dir string, from Position, each func(*Event) error) (Position, error) {
	head, err := readHead(dir) // before the rest, which grows
	if err != nil {
		return Position{}, fmt.Errorf("replay journal: %w", err)
	}
	w, err := newWalk(dir, from)
	w.anchors = []anchor{{head, "the head"}}
	if err == nil {
		err = w.run(eachEvent(each))
	}
	if err = errors.Join(err, w.close()); err != nil {
		err = fmt.Errorf("replay journal: %w", err)
	}
	return w.at, err
}

// ReplaySegment hands the events of one closed segment to each, as Replay does. It
// says where a purge has moved them.
func ReplaySegment(dir string, number int, each func(*Event) error) error {
	s, err := openSegment(dir, number)
	if err == nil {
		_, err = s.replay(eachEvent(each))
		err = errors.Join(err, s.file.Close())
	}
	if err != nil {
		return fmt.Errorf("replay segment of journal: %w", err)
	}
	return nil
}

func eachEvent(each func(*Event) error) func(*group) error {
	return func(g *group) error {
		for i := range g.events {
			if err := each(&g.events[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// ReadEvent reads the event of a place, also if a purge has moved it since; that
// takes longer. It checks the bodies; Replay and Verify check the rest.
func ReadEvent(dir string, at Place) (e Event, err error) {
	s, err := openSegment(dir, at.Segment)
	if err != nil {
		return Event{}, fmt.Errorf("read event %d: %w", at.N, err)
	}
	found, err := s.eventAt(&e, at)
	if err == nil && !found {
		_, err = s.replay(func(g *group) error {
			if first := g.events[0].N; first <= at.N && at.N <= g.end.N {
				e, found = g.events[at.N-first], true
				return errStop
			}
			return nil
		})
	}
	if err == nil && !found {
		err = fmt.Errorf("it is not in %s", segmentName(at.Segment))
	}
	if err = errors.Join(err, s.file.Close()); err != nil {
		return Event{}, fmt.Errorf("read event %d: %w", at.N, err)
	}
	return e, nil
}

// eventAt reads an event if its line is at its place.
func (s *segment) eventAt(e *Event, at Place) (found bool, err error) {
	if at.Offset < 0 || at.Length <= 0 || int64(at.Length) > s.size-at.Offset {
		return false, nil
	}
	line := make([]byte, at.Length)
	if _, err := s.file.ReadAt(line, at.Offset); err != nil {
		return false, err
	}
	if _, ok := parseEvent(line, e); !ok || e.N != at.N {
		return false, nil
	}
	if name, wrong := e.wrongBody(); wrong {
		err = s.damage(e.N, e.N, "its body "+name+" differs from the digest")
	}
	e.Place = at
	return true, err
}

// ReadBody reads a body of the event of a place. A purged one is ErrPurged.
func ReadBody(dir string, at Place, name string) ([]byte, error) {
	e, err := ReadEvent(dir, at)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(e.Bodies, func(b Body) bool { return b.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("event %d has no body %s", at.N, name)
	}
	if e.Bodies[i].Text == nil {
		return nil, fmt.Errorf("read body %s of event %d: %w", name, at.N, ErrPurged)
	}
	return e.Bodies[i].Text, nil
}

// A Report is what Verify has read.
type Report struct {
	End     Position
	Groups  int
	Events  int
	Bodies  int   // that are there
	Purged  int   // bodies that are not
	Torn    int64 // bytes behind the end: a write that has not ended, or never did
	Skipped int64 // bytes of failed writes that were made again in the next segment
	NoHead  bool  // there is no head file
}

// Verify reads the whole journal and returns the first damage as a *DamageError: an
// event that was edited, removed, added or moved, a body that differs, a segment that
// is missing, swapped or an older copy, and an end before the one in the head file. If
// only the hash of a group is wrong, the error names all its events. Anchors are
// positions that were kept elsewhere; the journal has to have them.
//
// Some changes cannot be seen without an anchor: an end that was cut behind the
// group of the head file, or together with that file; an older copy of the whole
// directory; a journal that was written anew. A change in the last group, behind the
// head, looks like a torn tail. Bodies that were removed look purged.
func Verify(ctx context.Context, dir string, anchors ...Position) (Report, error) {
	var r Report
	head, err := readHead(dir) // before the rest, which grows
	if err == nil {
		r.NoHead = head.N == 0
		err = r.verify(ctx, dir, head, anchors)
	}
	if err != nil {
		err = fmt.Errorf("verify journal: %w", err)
	}
	return r, err
}

func (r *Report) verify(ctx context.Context, dir string, head Position, anchors []Position) error {
	w, err := newWalk(dir, Position{})
	if err != nil {
		return err
	}
	w.anchors = []anchor{{head, "the head"}}
	for _, at := range anchors {
		w.anchors = append(w.anchors, anchor{at, "an anchor"})
	}
	slices.SortFunc(w.anchors, func(a, b anchor) int { return int(int64(a.N) - int64(b.N)) })
	err = w.run(func(g *group) error {
		r.Groups++
		r.Events += len(g.events)
		for i := range g.events {
			if e := &g.events[i]; e.purged() {
				r.Purged += len(e.Bodies)
			} else {
				r.Bodies += len(e.Bodies)
			}
		}
		return ctx.Err()
	})
	r.End, r.Torn, r.Skipped = w.at, w.torn, w.skipped
	return errors.Join(err, w.close())
}
