package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A DamageError says what of a journal is not as it was written.
type DamageError struct {
	File        string // a segment, or the head
	First, Last uint64 // the events; 0: not known
	Problem     string
}

// Error implements error.
func (e *DamageError) Error() string {
	switch e.First {
	case 0:
		return fmt.Sprintf("damaged: %s: %s", e.File, e.Problem)
	case e.Last:
		return fmt.Sprintf("damaged: %s: event %d: %s", e.File, e.First, e.Problem)
	}
	return fmt.Sprintf("damaged: %s: events %d to %d: %s", e.File, e.First, e.Last, e.Problem)
}

func isDamage(err error) bool {
	_, is := errors.AsType[*DamageError](err)
	return is
}

func segmentName(number int) string { return fmt.Sprintf("%08d.jsonl", number) }

func segmentPath(dir string, number int) string { return filepath.Join(dir, segmentName(number)) }

// lastSegment returns the number of the last segment, 0 for none. They begin with 1
// and have no gap.
func lastSegment(dir string) (last int, err error) {
	entries, err := os.ReadDir(dir)
	count := 0
	for _, entry := range entries {
		number := 0
		if _, err := fmt.Sscanf(entry.Name(), "%d.jsonl", &number); err == nil && entry.Name() == segmentName(number) {
			last, count = max(last, number), count+1
		}
	}
	for number := 1; number < last && count < last; number++ {
		if _, err := os.Lstat(segmentPath(dir, number)); errors.Is(err, os.ErrNotExist) {
			return 0, &DamageError{File: segmentName(number), Problem: "the segment is missing"}
		}
	}
	return last, err
}

// A segment reads one file, up to the size that it had at the last look.
type segment struct {
	file   *os.File
	number int
	size   int64

	buf  []byte
	base int64 // the offset of buf[0] in the file
	kept int   // the group that is read begins at buf[kept]
	next int   // and the next line at buf[next]
}

// A group is what segment.group has read. The next group takes its memory.
type group struct {
	text   []byte
	offset int64 // of its first line
	ends   []int // of its lines, in text
	events []Event
	bodies []int // where in the line of each its bodies begin
	sums   []byte
	end    Position
}

func openSegment(dir string, number int) (*segment, error) {
	file, err := os.Open(segmentPath(dir, number))
	if err != nil {
		return nil, err
	}
	s := &segment{file: file, number: number}
	if err := s.look(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// look notes the size of the file.
func (s *segment) look() error {
	info, err := s.file.Stat()
	if err == nil {
		s.size = info.Size()
	}
	return err
}

// seek has the next line begin at an offset.
func (s *segment) seek(offset int64) { s.buf, s.base, s.kept, s.next = s.buf[:0], offset, 0, 0 }

// offset is where the next line begins.
func (s *segment) offset() int64 { return s.base + int64(s.next) }

// line returns the next line with its end, and nil if there is no whole one.
func (s *segment) line() ([]byte, error) {
	for searched := 0; ; {
		if length := bytes.IndexByte(s.buf[s.next+searched:], '\n'); length >= 0 {
			line := s.buf[s.next:][:searched+length+1]
			s.next += len(line)
			return line, nil
		}
		searched = len(s.buf) - s.next
		if more, err := s.fill(); err != nil || !more {
			return nil, err
		}
	}
}

// fill reads more of the file into buf, which keeps the group that is read.
func (s *segment) fill() (more bool, err error) {
	const chunk = 256 << 10
	s.buf = s.buf[:copy(s.buf, s.buf[s.kept:])]
	s.base, s.next, s.kept = s.base+int64(s.kept), s.next-s.kept, 0
	end := s.base + int64(len(s.buf))
	want := int(min(s.size-end, chunk))
	if want <= 0 {
		return false, nil
	}
	if cap(s.buf)-len(s.buf) < want {
		s.buf = append(make([]byte, 0, 2*len(s.buf)+chunk), s.buf...)
	}
	n, err := s.file.ReadAt(s.buf[len(s.buf):][:want], end)
	s.buf = s.buf[:len(s.buf)+n]
	if errors.Is(err, io.EOF) {
		err = nil // it was cut since
	}
	return n > 0, err
}

// header reads the first line.
func (s *segment) header() (header, error) {
	line, err := s.line()
	h, ok := parseHeader(line)
	if bytes.HasPrefix(line, []byte(newerBegin)) {
		return h, fmt.Errorf("%s %w", segmentName(s.number), ErrNewer)
	}
	if err == nil && (!ok || h.segment != s.number) {
		err = s.damage(0, 0, "its first line is not the header of this segment")
	}
	return h, err
}

// group reads the group that follows a position. It returns false at the end of the
// file, and a *DamageError if what comes is no such group.
func (s *segment) group(g *group, after Position) (ok bool, err error) {
	s.kept, g.ends = s.next, g.ends[:0]
	for more := true; more; {
		line, err := s.line()
		if err != nil {
			return false, err
		}
		if line == nil && len(g.ends) == 0 && s.offset() == s.size {
			return false, nil
		}
		if line == nil {
			return false, s.damage(after.N+1, after.N+1, "its group has no end")
		}
		g.ends = append(g.ends, s.next-s.kept)
		more = !bytes.HasPrefix(line, []byte(groupBegin))
	}
	g.text, g.offset = s.buf[s.kept:s.next], s.base+int64(s.kept)
	err = s.decode(g, after)
	return err == nil, err
}

// decode reads the lines of a group.
func (s *segment) decode(g *group, after Position) error {
	count, n, start := len(g.ends)-1, after.N, 0
	g.events, g.bodies = slices.Grow(g.events[:0], count)[:count], slices.Grow(g.bodies[:0], count)[:count]
	g.sums = append(g.sums[:0], after.Hash[:]...)
	for i := range g.events {
		line, e, ok := g.text[start:g.ends[i]], &g.events[i], false
		if g.bodies[i], ok = parseEvent(line, e); !ok {
			return s.damage(n+1, n+1, "its line cannot be read")
		}
		if e.N != n+1 {
			return s.damage(n+1, n+1, fmt.Sprintf("event %d is in its place", e.N))
		}
		if name, wrong := e.wrongBody(); wrong {
			return s.damage(e.N, e.N, "its body "+name+" differs from the digest")
		}
		e.Place = Place{e.N, s.number, g.offset + int64(start), len(line)}
		sum := sumLine(line, g.bodies[i])
		g.sums = append(g.sums, sum[:]...)
		n, start = e.N, g.ends[i]
	}
	g.end = Position{n, sha256.Sum256(g.sums), s.number, g.offset + int64(len(g.text))}
	if want := appendGroupLine(nil, after.N+1, n, g.end.Hash); n == after.N || !bytes.Equal(g.text[start:], want) {
		return s.damage(after.N+1, max(n, after.N+1), "the line that ends the group has another hash, or other events")
	}
	return nil
}

func (s *segment) damage(first, last uint64, problem string) error {
	return &DamageError{segmentName(s.number), first, last, problem}
}

// torn reports whether what comes can be left of a single group whose last line begins
// with a prefix: no line ends a group, except that one at the end of the file.
func (s *segment) torn(prefix []byte) (bool, error) {
	for {
		s.kept = s.next
		line, err := s.line()
		if err != nil || line == nil {
			return true, err
		}
		if bytes.HasPrefix(line, []byte(groupBegin)) && (!bytes.HasPrefix(line, prefix) || s.offset() < s.size) {
			return false, nil
		}
	}
}

// errStop ends segment.replay.
var errStop = errors.New("stop")

// replay reads the whole segment by itself, until each returns errStop.
func (s *segment) replay(each func(*group) error) (h header, err error) {
	if h, err = s.header(); err != nil {
		return h, err
	}
	var g group
	for at := (Position{N: h.n, Hash: h.hash}); ; at = g.end {
		ok, err := s.group(&g, at)
		if err == nil && ok {
			err = each(&g)
		}
		if errors.Is(err, errStop) || isDamage(err) && s.retried(at) {
			return h, nil
		}
		if err != nil || !ok {
			return h, err
		}
	}
}

// retried reports whether the next segment has the group that follows a position.
func (s *segment) retried(at Position) bool {
	next, err := openSegment(filepath.Dir(s.file.Name()), s.number+1)
	if err != nil {
		return false
	}
	h, err := next.header()
	_ = next.file.Close() // it was read alone
	return err == nil && h.retry && at.same(Position{N: h.n, Hash: h.hash})
}

// endsAt reports whether the group of a position ends at its offset.
func (s *segment) endsAt(at Position) (bool, error) {
	end := appendGroupEnd(nil, at.N, at.Hash)
	text := make([]byte, len(end))
	if at.Offset < int64(len(text)) || at.Offset > s.size {
		return false, nil
	}
	_, err := s.file.ReadAt(text, at.Offset-int64(len(text)))
	return bytes.Equal(text, end), err
}
