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
// the whole text, or what one markdown fence around it holds, or else each
// object that begins and ends a line, so that banners and logs between them do
// not matter. Nothing within an object is looked for, nor after one that the
// text ends in.
func printed(text []byte) iter.Seq[[]byte] {
	text = bytes.Trim(noise.ReplaceAll(text, nil), space+"\uFEFF")
	text = unfence(text)
	return func(yield func([]byte) bool) {
		budget := 4 * len(text) // bytes to look at: nested halves must not cost their square
		for len(text) > 0 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
			n, err := objectEnd(text)
			if budget -= n; budget < 0 || errors.Is(err, errHalf) {
				return
			}
			switch {
			case err != nil || !endsLine(text[n:]):
				n = 0
			case !yield(text[:n:n]):
				return
			}
			text = nextLine(text[n:])
		}
	}
}

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

// nextLine returns what follows the first line end; a carriage return is one.
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

// noise is what terminals act on and JSON cannot contain: ANSI control
// sequences, operating system commands, and other escapes.
var noise = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|\x1b[ -~]")

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
