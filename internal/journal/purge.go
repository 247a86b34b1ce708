package journal

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"mailboxd/internal/fault"
)

// Purge removes the bodies of the events of a closed segment that drop returns true
// for, and returns how many bytes that saves. It writes the segment aside, reads it
// again, and then has it take the place of the old one. The Places of the events
// change: ReplaySegment has the new ones. Append may run at the same time.
func (j *Journal) Purge(number int, drop func(*Event) bool) (saved int64, err error) {
	j.purging.Lock()
	defer j.purging.Unlock()
	last, err := lastSegment(j.dir)
	if err == nil && number >= last {
		err = errors.New("the segment is not closed")
	}
	var s *segment
	if err == nil {
		s, err = openSegment(j.dir, number)
	}
	if err == nil {
		err = replaceFile(s.file.Name(), func(aside *os.File) (err error) {
			saved, err = s.purgeInto(aside, drop)
			return err
		})
		err = errors.Join(err, s.file.Close())
	}
	if errors.Is(err, errNothing) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", segmentName(number), err)
	}
	return saved, nil
}

// errNothing says that a purge has nothing to remove.
var errNothing = errors.New("nothing to remove")

// purgeInto writes a segment without the bodies that drop is true for, and reads it
// again.
func (s *segment) purgeInto(aside *os.File, drop func(*Event) bool) (saved int64, err error) {
	out := bufio.NewWriterSize(aside, 256<<10)
	h, err := s.header()
	out.Write(appendHeader(nil, h)) // Flush returns its error
	s.seek(0)
	var end, again Position
	if err == nil {
		_, err = s.replay(func(g *group) error {
			end = g.end
			saved += g.writeWithout(out, drop)
			return nil
		})
	}
	if err == nil && saved == 0 {
		err = errNothing
	}
	if err == nil {
		err = fault.Read("write purged segment")
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return 0, err
	}
	written := &segment{file: aside, number: s.number}
	if err := written.look(); err != nil {
		return 0, err
	}
	got, err := written.replay(func(g *group) error { again = g.end; return nil })
	if err == nil && (got != h || !again.same(end)) {
		err = errors.New("the purged segment has another header or hash")
	}
	return saved, err
}

// writeWithout writes a group without the bodies that drop is true for, and returns
// how many bytes it left out.
func (g *group) writeWithout(out *bufio.Writer, drop func(*Event) bool) (saved int64) {
	start := 0
	for i, end := range g.ends {
		line := g.text[start:end]
		start = end
		if i == len(g.events) || len(g.events[i].Bodies) == 0 || g.events[i].purged() || !drop(&g.events[i]) {
			out.Write(line)
			continue
		}
		out.Write(line[:g.bodies[i]])
		out.WriteString("}\n")
		saved += int64(len(line) - g.bodies[i] - len("}\n"))
	}
	return saved
}
