package agent

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	errNothing   = errors.New("the agent printed no answer")
	errNoObject  = errors.New("the agent printed no JSON object as its answer")
	errTangled   = errors.New("the agent printed too many broken JSON objects to find its answer")
	errNotObject = errors.New("not an object")
	errHalf      = errors.New("not a complete object")
)

// lenient finds where an object ends; whether it may be used is decided later,
// by a reader who can say what is wrong with it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// findObject finds the answer among what else an agent prints: the whole text,
// or what one markdown fence around it holds, or else the last complete object
// that begins and ends a line. Objects that name different tasks are no answer,
// for we would have to guess. Whole is false when text is only the end of more.
func findObject(text []byte, whole bool) ([]byte, error) {
	text = bytes.Trim(plain(text), " \t\r\n\uFEFF")
	if len(text) == 0 {
		return nil, errNothing
	}
	if whole {
		all := unfence(text)
		if end, err := objectEnd(all); err == nil && end == len(all) {
			return all, nil
		}
	} else {
		_, text, _ = bytes.Cut(text, []byte("\n")) // the first line may be the end of one
	}
	found, task := []byte(nil), ""
	for object, err := range objects(text) {
		if err != nil {
			return nil, err
		}
		found = object
		named := taskOf(object)
		if task != "" && named != "" && named != task {
			return nil, fmt.Errorf("the agent printed answers for two tasks, %s and %s", short(task), short(named))
		}
		task = cmp.Or(task, named)
	}
	if found == nil {
		return nil, errNoObject
	}
	return found, nil
}

// objects yields the complete objects that begin and end a line, in their
// order. Nothing within an object is looked for, nor after one that the text
// ends in: half an answer has no parts that are one.
func objects(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		budget := 4 * len(text) // bytes to look at: nested halves must not cost their square
		for len(text) > 0 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
			n, err := objectEnd(text)
			if budget -= n; budget < 0 {
				yield(nil, errTangled)
				return
			}
			switch {
			case errors.Is(err, errHalf):
				return
			case err != nil || !endsLine(text[n:]):
				n = 0
			case !yield(text[:n], nil):
				return
			}
			text = nextLine(text[n:])
		}
	}
}

// objectEnd returns where the object that text begins with ends, and otherwise
// how far it could be read.
func objectEnd(text []byte) (int, error) {
	if len(text) == 0 || text[0] != '{' {
		return 0, errNotObject
	}
	value, err := jsontext.NewDecoder(bytes.NewBuffer(text), lenient).ReadValue()
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

// noise is what terminals act on and JSON cannot contain: ANSI control
// sequences, operating system commands, and other escapes.
var noise = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|\x1b[ -~]")

func plain(text []byte) []byte {
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

// taskOf returns the task an object names, as written; "" when it names none.
func taskOf(object []byte) string {
	var named struct {
		TaskID jsontext.Value `json:"task_id"`
	}
	if json.Unmarshal(object, &named, lenient) != nil || named.TaskID.Kind() != '"' {
		return ""
	}
	return string(named.TaskID)
}
