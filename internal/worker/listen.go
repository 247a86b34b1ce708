package worker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// maxLine bounds an answer, in bytes.
const maxLine = 4 << 20

// lenient reads a task_id behind whatever an answer must not have: whoever asked
// refuses that answer, and does not wait for another.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// listen reads the answers until the output ends.
func (pr *process) listen() {
	defer close(pr.silent)
	defer pr.retire()
	lines := lineReader{from: bufio.NewReaderSize(pr.stdout, 64<<10)}
	ear := jsontext.NewDecoder(&bytes.Buffer{}, lenient)
	for {
		line, whole, err := lines.next()
		if line = bytes.TrimSpace(line); len(line) > 0 && (whole || jsontext.Value(line).IsValid()) {
			pr.hear(ear, line, lines.tooLong)
		} else if len(line) > 0 {
			pr.dismiss(line) // half an answer is none
		}
		if err != nil {
			return // the end, or nobody listens any more
		}
	}
}

// hear gives a line to whoever asked for it.
func (pr *process) hear(ear *jsontext.Decoder, line []byte, tooLong bool) {
	id := taskOf(ear, line)
	pr.mu.Lock()
	c, known := pr.asked[envelope.ID(id)]
	if known {
		delete(pr.asked, envelope.ID(id))
	}
	if c != nil {
		pr.answers++
	}
	pr.mu.Unlock()
	switch {
	case c == nil && !known:
		pr.dismiss(line)
	case c == nil: // too late
	case tooLong:
		c.events <- event{err: ErrTooLong}
		<-pr.room
	default:
		c.events <- event{line: bytes.Clone(line)}
		<-pr.room
	}
}

// dismiss counts a line that answers nothing, and tells the first: not what it
// says, which may be what a task said.
func (pr *process) dismiss(line []byte) {
	pr.mu.Lock()
	pr.junk++
	first := pr.junk == 1
	pr.mu.Unlock()
	if first {
		pr.pool.notice(fmt.Errorf("worker %d printed a line of %d bytes that answers nothing", pr.pid, len(line)))
	}
}

// taskOf returns the task_id of an object; "" when it has none, or what comes
// before is not JSON. Whether the line is an answer is for others to decide.
func taskOf(ear *jsontext.Decoder, line []byte) string {
	ear.Reset(bytes.NewBuffer(line), lenient)
	if begin, err := ear.ReadToken(); err != nil || begin.Kind() != '{' {
		return ""
	}
	for {
		name, err := ear.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}
		if name.String() == "task_id" {
			break
		}
		if ear.SkipValue() != nil {
			return ""
		}
	}
	id, err := ear.ReadToken()
	if err != nil || id.Kind() != '"' {
		return ""
	}
	return id.String()
}

// A lineReader reads lines in bounded memory.
type lineReader struct {
	from    *bufio.Reader
	long    []byte // the line, when it is longer than from's buffer
	tooLong bool   // of the last line only its beginning was kept
}

// next returns the next line, until it is called again. Whole says that it had
// a line end. An error comes with what is before it.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	l.long, l.tooLong = l.long[:0], false
	if cap(l.long) > maxText {
		l.long = nil
	}
	for {
		piece, err := l.from.ReadSlice('\n')
		if len(l.long) == 0 && !errors.Is(err, bufio.ErrBufferFull) {
			return piece, err == nil, err
		}
		keep := min(len(piece), maxLine-len(l.long))
		l.tooLong = l.tooLong || keep < len(piece)
		l.long = append(l.long, piece[:keep]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, err == nil, err
		}
	}
}

// maxTail is how much is kept of what a process prints on stderr, in bytes.
const maxTail = 4 << 10

// A tail is the end of a text. It is for one goroutine, and for others when
// that is done.
type tail struct {
	text []byte
	cut  bool
}

func (t *tail) readFrom(f *os.File) {
	block := make([]byte, maxTail)
	for {
		n, err := f.Read(block)
		t.text = append(t.text, block[:n]...)
		if over := len(t.text) - maxTail; over > 0 {
			t.text, t.cut = append(t.text[:0], t.text[over:]...), true
		}
		if err != nil {
			return // the end, or nobody listens any more
		}
	}
}
