package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A header is the first line of a segment.
type header struct {
	segment int
	n       uint64 // the event, and
	hash    Hash   // the hash, that the segment follows
	retry   bool   // the segment before may end with the first group of this one, or with a part of it
}

// newerBegin begins the header of a format that a later version has. This one has no number.
const newerBegin = `{"version":`

func appendHeader(b []byte, h header) []byte {
	b = strconv.AppendInt(append(b, `{"segment":`...), int64(h.segment), 10)
	b = strconv.AppendUint(append(b, `,"after":{"n":`...), h.n, 10)
	b = hex.AppendEncode(append(b, `,"sha256":"`...), h.hash[:])
	if h.retry {
		return append(b, "\"},\"retry\":true}\n"...)
	}
	return append(b, "\"}}\n"...)
}

func parseHeader(line []byte) (h header, ok bool) {
	p := parser{text: line}
	p.expect(`{"segment":`)
	h.segment = int(p.number())
	p.expect(`,"after":{"n":`)
	h.n = p.number()
	p.expect(`,"sha256":"`)
	h.hash = p.hash()
	p.expect(`"}`)
	h.retry = p.follows(`,"retry":true`)
	p.expect("}\n")
	return h, p.done()
}

// groupBegin begins each line that ends a group.
const groupBegin = `{"group":{"first":`

// groupPrefix begins the line that ends the group of that first event.
func groupPrefix(first uint64) []byte {
	return append(strconv.AppendUint([]byte(groupBegin), first, 10), ',')
}

func appendGroupLine(b []byte, first, last uint64, hash Hash) []byte {
	b = strconv.AppendUint(append(b, groupBegin...), first, 10)
	return appendGroupEnd(append(b, ','), last, hash)
}

// appendGroupEnd appends what a line that ends a group ends with.
func appendGroupEnd(b []byte, last uint64, hash Hash) []byte {
	b = strconv.AppendUint(append(b, `"last":`...), last, 10)
	b = hex.AppendEncode(append(b, `,"sha256":"`...), hash[:])
	return append(b, "\"}}\n"...)
}

// A parser reads lines as they are written here. Once something is different, it is
// bad and stays so.
type parser struct {
	text []byte
	at   int
	bad  bool
}

// done reports whether everything was as expected, up to the end.
func (p *parser) done() bool { return !p.bad && p.at == len(p.text) }

// follows takes a text if it comes next.
func (p *parser) follows(text string) bool {
	if p.bad || !bytes.HasPrefix(p.text[p.at:], []byte(text)) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *parser) expect(text string) { p.bad = !p.follows(text) }

func (p *parser) number() uint64 {
	start := p.at
	for p.at < len(p.text) && p.text[p.at]-'0' <= 9 {
		p.at++
	}
	n, err := strconv.ParseUint(string(p.text[start:p.at]), 10, 63)
	p.bad = p.bad || err != nil || p.text[start] == '0' && p.at > start+1
	return n
}

func (p *parser) hash() (h Hash) {
	digits := p.text[p.at:min(p.at+2*len(h), len(p.text))]
	_, err := hex.Decode(h[:], digits)
	p.bad = p.bad || err != nil || len(digits) < 2*len(h) || bytes.ContainsAny(digits, "ABCDEF")
	p.at += len(digits)
	return h
}

// quoted reads a string.
func (p *parser) quoted() string {
	quoted := p.skipString()
	if p.bad {
		return ""
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	p.bad = err != nil
	return string(text)
}

// skipString returns a string with its quotes.
func (p *parser) skipString() []byte {
	start := p.at
	p.expect(`"`)
	for !p.bad {
		length := bytes.IndexByte(p.text[p.at:], '"')
		p.bad = length < 0
		p.at += length + 1
		escapes := 0
		for !p.bad && p.text[p.at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			break
		}
	}
	return p.text[start:p.at]
}

// value returns a JSON value with the blanks around it. It finds the end by quotes
// and brackets, and does not check what is inside.
func (p *parser) value() []byte {
	start, depth := p.at, 0
	for ; !p.bad && p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '"':
			p.skipString()
			p.at--
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth < 0 || depth == 0 && p.text[p.at] == ',' {
			break
		}
	}
	value := p.text[start:p.at:p.at]
	p.bad = p.bad || depth > 0 || len(bytes.TrimSpace(value)) == 0
	return value
}

// errValue says that data or a body is not what a line can hold.
var errValue = errors.New("is not one JSON value on one line")

// checkValue returns an error unless text is a JSON value that value finds the end of.
func checkValue(text []byte) error {
	p := parser{text: text}
	if p.value(); !p.done() || bytes.IndexByte(text, '\n') >= 0 {
		return errValue
	}
	return nil
}
