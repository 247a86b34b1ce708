package dialect

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// printed yields the complete objects in the output of an agent, in order: those of the whole
// text, or of the one markdown fence around it.
func printed(text []byte) iter.Seq2[[]byte, error] {
	return Objects(unfence(bytes.Trim(Plain(text), space+"\uFEFF")))
}

// Objects yields the complete objects that begin and end a line, in order, so that banners and
// logs between them do not matter. It looks for no object inside another one, nor behind an
// object that the end of the text cuts off: the parts of half an answer are no answers. For
// objects that share a line it yields ErrSameLine instead, once for the line. The last value
// may be ErrTangled. An error comes without an object.
func Objects(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		budget := 4 * len(text) // bytes to scan: nested incomplete objects must not take quadratic time
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

// OneObject returns the object that a text consists of, with or without one markdown fence
// around it; nil for any other text.
func OneObject(text []byte) []byte {
	all := unfence(text)
	if end, err := objectEnd(all); err != nil || end != len(all) {
		return nil
	}
	return all
}

// ErrSameLine tells that objects share a line, so that none of them counts.
var ErrSameLine = errors.New("two JSON objects are on one line")

// ErrTangled tells that a text has too many broken objects to find complete ones in it.
var ErrTangled = errors.New("too many broken JSON objects")

var (
	errNotObject = errors.New("not an object")
	errHalf      = errors.New("not a complete object")
)

// objectEnd returns the end of the object at the start of text; with an error, the offset of
// the error.
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

// nextLine returns the text behind the first line end. A carriage return ends a line too: a
// progress bar overwrites the text before it.
func nextLine(text []byte) []byte {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return nil
	}
	return text[i+1:]
}

// endsLine reports whether the line has no further text.
func endsLine(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\uFEFF")
	return len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r'
}

// followed reports whether another object begins on the line.
func followed(rest []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(rest, " \t,"), []byte("{"))
}

// noise are the escapes of terminals, which JSON cannot contain: ANSI control sequences,
// operating system commands, and others.
var noise = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|\x1b[ -~]")

// Plain removes the escapes of terminals.
func Plain(text []byte) []byte {
	if bytes.IndexByte(text, '\x1b') < 0 {
		return text
	}
	return noise.ReplaceAll(text, nil)
}

// unfence removes one markdown fence around the whole text.
func unfence(text []byte) []byte {
	const fence = "```"
	inner, opened := bytes.CutPrefix(text, []byte(fence))
	inner, closed := bytes.CutSuffix(inner, []byte(fence))
	_, inner, lines := bytes.Cut(inner, []byte("\n")) // the name of a language may follow the fence
	if !opened || !closed || !lines {
		return text
	}
	return bytes.TrimSpace(inner)
}
