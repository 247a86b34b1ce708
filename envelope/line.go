package envelope

import (
	"bytes"
	"slices"
)

// A Piece is one envelope of a line, taken or refused.
type Piece struct {
	Task     Task
	Findings Findings
}

// ReadLine reads one line of a task file. A blank line has no pieces and most lines have one.
// Two writers may share a line, and one of them may be cut off in the middle of a write. The
// complete objects at the front of the line and at its end then become a Piece each, with a
// warning, and the text between them becomes one refused Piece. No object is read from the
// middle of a fragment. The tasks keep the given slice and point into it.
func ReadLine(line []byte, how Reading) []Piece {
	line = trim(line)
	if len(line) == 0 {
		return nil
	}
	t, findings := DecodeTask(line, how)
	if !findings.Refused() || bytes.HasPrefix(line, []byte("\ufeff")) {
		return []Piece{{t, findings}}
	}
	spans := Split(line, func(object []byte) bool { return Answerable(object, how) })
	if len(spans) == 1 {
		return []Piece{{t, findings}}
	}
	var pieces []Piece
	for _, s := range spans {
		t, findings := DecodeTask(s.Raw, how)
		if !s.Fragment {
			findings = append(findings, SharedLine)
		}
		pieces = append(pieces, Piece{t, findings})
	}
	return dropAnswered(pieces)
}

// SharedLine is the warning about an envelope that was not alone in its line.
var SharedLine = Finding{Message: "shared its line with another envelope"}

// dropAnswered removes the id of a fragment if a complete piece has it too: the sender was cut
// off, tried again, and waits for the answer to the complete piece.
func dropAnswered(pieces []Piece) []Piece {
	taken := map[ID]bool{}
	for _, p := range pieces {
		taken[p.Task.ID] = taken[p.Task.ID] || !p.Findings.Refused()
	}
	for i, p := range pieces {
		if p.Findings.Refused() && taken[p.Task.ID] {
			pieces[i].Task.ID = ""
		}
	}
	return pieces
}

// trim removes the white space around a line, the CR of a CRLF included.
func trim(line []byte) []byte { return bytes.Trim(line, space) }

// space is what JSON takes for white space.
const space = " \t\r\n"

// A Span is a part of a line: a complete object, or a fragment.
type Span struct {
	Raw      []byte // without the white space around it
	Fragment bool   // it is no complete object

	from int
}

// Answerable reports whether a complete object behind a fragment is a request of its own: a
// valid request, or a refused one with all marks of a request and a safe id for an answer.
func Answerable(object []byte, how Reading) bool {
	t, findings := DecodeTask(object, how)
	if !findings.Refused() {
		return true
	}
	c := check{document: documents.Get().(*document)}
	defer c.release()
	return t.ID != "" && c.parse(object) && c.has("schema_version", "task_id", "requester_id", "target_agent")
}

// Split finds the complete objects at the front of a line without white space around it, then
// the longest sequence of objects at its end that begins with a valid one. The spans point into
// the line.
func Split(line []byte, valid func(object []byte) bool) []Span {
	s := splitter{line: line, valid: valid, met: make([]bool, len(line))}
	spans, rest := s.run(0)
	if rest == len(line) {
		return spans
	}
	back := s.tail(rest)
	end := len(line)
	if len(back) > 0 {
		end = back[0].from
	}
	if rest < end {
		spans = append(spans, Span{from: rest, Raw: line[rest:end], Fragment: true})
	}
	return append(spans, back...)
}

// A splitter remembers which braces a scan has read as structure. An error that breaks off the
// value around such a brace breaks off the brace's own value too, or leaves text after it, so
// the brace needs no second try. Only a value right before the error may begin a sequence. That
// bounds the work: of the scans that pass a byte, few read it as structure and few as the
// inside of a string.
type splitter struct {
	line  []byte
	valid func(object []byte) bool
	doc   document
	met   []bool
}

// tail finds the longest sequence of objects behind from that reaches the end of the line.
func (s *splitter) tail(from int) []Span {
	for at := from; at < len(s.line); at++ {
		if s.line[at] != '{' || s.met[at] {
			continue
		}
		run, end := s.run(at)
		if end != len(s.line) {
			continue
		}
		if first := slices.IndexFunc(run, func(candidate Span) bool { return s.valid(candidate.Raw) }); first >= 0 {
			return run[first:]
		}
	}
	return nil
}

// mostPieces limits the objects in a line: no more writers share one, and "{}" a million times
// is no message.
const mostPieces = 100

// run reads objects from a brace on. It returns them with the end of the last, or the start if
// there is none.
func (s *splitter) run(from int) (spans []Span, rest int) {
	for rest = from; rest < len(s.line) && s.line[rest] == '{' && len(spans) < mostPieces; {
		end, err := s.doc.scan(s.line, rest, len(s.line))
		s.meet(err)
		if err != nil {
			break
		}
		spans = append(spans, Span{from: rest, Raw: s.line[rest:end]})
		rest = len(s.line) - len(bytes.TrimLeft(s.line[end:], space))
	}
	return spans, rest
}

// meet remembers the braces of the last scan. An object that ends right where the scan broke
// off may still begin a sequence, if the line ends there or another object follows.
func (s *splitter) meet(err *syntaxError) {
	open := int32(brokenOff)
	if err != nil && (err.at == len(s.line) || s.line[err.at] == '{') {
		open = int32(len(bytes.TrimRight(s.line[:err.at], space)))
	}
	for _, n := range s.doc.nodes {
		if n.kind == '{' {
			s.met[n.start] = n.end == brokenOff || n.end != open
		}
	}
}
