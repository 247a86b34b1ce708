package envelope

import (
	"bytes"
	"fmt"
	"math"
)

// A scanner reads one JSON value (RFC 8259) into a document. It keeps no stack: an open
// container remembers the one around it, so the length of the text bounds the memory, not the
// depth.
type scanner struct {
	*document
	pos   int
	open  int // the innermost container that is not closed; -1 for none
	depth int
	max   int // the deepest nesting of containers
}

// brokenOff is the end of a container that the text does not close.
const brokenOff = -1

// A syntaxError is the reason why a text is no JSON value. Split makes many of them and shows
// few, so the text is made on demand.
type syntaxError struct {
	at      int    // byte offset
	what    string // the error, or
	wanted  string // the text that should be there
	tooDeep bool
}

// in returns the message for raw, the scanned text.
func (e *syntaxError) in(raw []byte) string {
	switch rest := raw[e.at:]; {
	case e.what != "":
		return e.what
	case len(rest) == 0:
		return "ends where " + e.wanted + " should be"
	case bytes.HasPrefix(rest, []byte("\ufeff")):
		return "has a byte order mark where " + e.wanted + " should be"
	default:
		return fmt.Sprintf("has %q where %s should be", rest[:1], e.wanted)
	}
}

// scan reads the value that starts at from and returns its end, or the offset of the error.
// After an error the document holds the nodes before it, and path can use them.
func (d *document) scan(raw []byte, from, max int) (end int, _ *syntaxError) {
	d.raw, d.nodes, d.duplicates = raw, d.nodes[:0], d.duplicates[:0]
	s := scanner{document: d, pos: from, open: -1, max: max}
	if len(raw) > math.MaxInt32 {
		return 0, s.fail("is too long")
	}
	if err := s.run(); err != nil {
		for s.pos = brokenOff; s.open >= 0; {
			s.leave() // so that path works
		}
		return err.at, err
	}
	return s.pos, nil
}

// run reads value after value until the outermost is complete.
func (s *scanner) run() *syntaxError {
	for {
		s.space()
		if err := s.value(); err != nil {
			return err
		}
		if done, err := s.follow(); done || err != nil {
			return err
		}
	}
}

// follow reads the text between a value, or an opening bracket, and the next value. It is done
// when the outermost container is closed.
func (s *scanner) follow() (done bool, _ *syntaxError) {
	for s.open >= 0 {
		inObject := s.kind(s.open) == '{'
		first := s.open == len(s.nodes)-1
		s.space()
		switch c := s.peek(); {
		case c == '}' && inObject, c == ']' && !inObject:
			s.pos++
			s.leave()
			continue
		case first:
		case c == ',':
			s.pos++
			s.space()
		default:
			return false, s.unexpected(between[inObject])
		}
		if !inObject {
			return false, nil
		}
		return false, s.name()
	}
	return true, nil
}

var between = map[bool]string{
	true:  "a comma or the end of the object",
	false: "a comma or the end of the array",
}

// name reads a member's name and the colon after it.
func (s *scanner) name() *syntaxError {
	if s.peek() != '"' {
		return s.unexpected("a name in quotes")
	}
	if err := s.text(); err != nil {
		return err
	}
	s.space()
	if s.peek() != ':' {
		return s.unexpected("a colon")
	}
	s.pos++
	return nil
}

// value reads a scalar, or the opening bracket of a container.
func (s *scanner) value() *syntaxError {
	switch c := s.peek(); c {
	case '{', '[':
		return s.enter(c)
	case '"':
		return s.text()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number()
	}
	return s.literal()
}

func (s *scanner) enter(kind byte) *syntaxError {
	if s.depth++; s.depth > s.max {
		return &syntaxError{at: s.pos, what: "is nested too deep", tooDeep: true}
	}
	around := s.open
	s.open = len(s.nodes)
	s.push(node{kind: kind, start: int32(s.pos), next: int32(around)})
	s.pos++
	return nil
}

func (s *scanner) leave() {
	s.depth--
	n := &s.nodes[s.open]
	s.open = int(n.next)
	n.next = int32(len(s.nodes))
	n.end = int32(s.pos)
}

func (s *scanner) push(n node) { s.nodes = append(s.nodes, n) }

// pushScalar adds a node without children.
func (s *scanner) pushScalar(kind byte, start int, escaped bool) {
	s.push(node{kind: kind, start: int32(start), end: int32(s.pos), next: int32(len(s.nodes) + 1), escaped: escaped})
}

func (s *scanner) space() {
	for s.pos < len(s.raw) {
		switch s.raw[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end: a NUL is an error too.
func (s *scanner) peek() byte {
	if s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0
}

func (s *scanner) fail(what string) *syntaxError { return &syntaxError{at: s.pos, what: what} }

func (s *scanner) unexpected(wanted string) *syntaxError {
	return &syntaxError{at: s.pos, wanted: wanted}
}
