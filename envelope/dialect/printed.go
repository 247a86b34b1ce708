package dialect

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// printed yields the complete objects of what an agent printed, in their order:
// those of the whole text, or of what one markdown fence around it holds.
func printed(text []byte) iter.Seq2[[]byte, error] {
	return Objects(unfence(bytes.Trim(Plain(text), space+"\uFEFF")))
}

// Objects yields the complete objects that begin and end a line, in their order,
// so that banners and logs between them do not matter. Nothing within an object is
// looked for, nor after one that the text ends in: half an answer has no parts that
// are one. Objects that share a line yield ErrSameLine instead, once for the line. The last may be
// ErrTangled. An error comes without an object.
func Objects(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		budget := 4 * len(text) // bytes to look at: nested halves must not cost their square
		for len(text) > 0 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
			n, err := objectEnd(text)
			if budget -= n; budget < 0 {
				yield(nil, ErrTangled)
				return
			}
			switch {
			case errors.Is(err, errHalf):
				return
			case err == nil && followed(text[n:]):
				n = 0
				if !yield(nil, ErrSameLine) {
					return
				}
			case err != nil || !endsLine(text[n:]):
				n = 0
			case !yield(text[:n:n], nil):
				return
			}
			text = nextLine(text[n:])
		}
	}
}

// OneObject returns the object that a text is, with or without one markdown fence
// around it; nil when it is anything else.
func OneObject(text []byte) []byte {
	all := unfence(text)
	if end, err := objectEnd(all); err != nil || end != len(all) {
		return nil
	}
	return all
}

// ErrSameLine says that objects share a line, so that none of them counts.
var ErrSameLine = errors.New("two JSON objects are on one line")

// ErrTangled says that a text has too many broken objects to find whole ones in it.
var ErrTangled = errors.New("too many broken JSON objects")

var (
	errNotObject = errors.New("not an object")
	errHalf      = errors.New("not a complete object")
)

// objectEnd returns where the object that text begins with ends, and otherwise
// how far it could be read.
func objectEnd(text []byte) (int, error) {
	if len(text) == 0 || text[0] != '{' {
		return 0, errNotObject
	}
	value, err := jsontext.NewDecoder(bytes.NewBuffer(text), lenientJSON).ReadValue()
	if err == nil {
		return len(value), nil
	}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !errors.Is(err, io.ErrUnexpectedEOF) {
		return int(bad.ByteOffset), errNotObject
	}
	return len(text), errHalf
}

// nextLine returns what follows the first line end. A carriage return is one
// too: what a progress bar overwrites is not part of the answer.
func nextLine(text []byte) []byte {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return nil
	}
	return text[i+1:]
}

// endsLine reports whether nothing more stands on the line.
func endsLine(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\uFEFF")
	return len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r'
}

// followed reports whether another object begins on the line.
func followed(rest []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(rest, " \t,"), []byte("{"))
}

// noise is what terminals act on and JSON cannot contain: ANSI control
// sequences, operating system commands, and other escapes.
var noise = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|\x1b[ -~]")

// Plain takes off what terminals act on.
func Plain(text []byte) []byte {
	if bytes.IndexByte(text, '\x1b') < 0 {
		return text
	}
	return noise.ReplaceAll(text, nil)
}

// unfence takes one markdown fence off a text that is nothing else.
func unfence(text []byte) []byte {
	const fence = "```"
	inner, opened := bytes.CutPrefix(text, []byte(fence))
	inner, closed := bytes.CutSuffix(inner, []byte(fence))
	_, inner, lines := bytes.Cut(inner, []byte("\n")) // what follows the fence names a language
	if !opened || !closed || !lines {
		return text
	}
	return bytes.TrimSpace(inner)
}
