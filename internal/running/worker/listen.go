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

// maxLine limits an answer, in bytes.
const maxLine = 4 << 20

// lenient finds the task_id in an invalid answer. The caller of Ask then refuses the answer
// and doesn't wait for another one.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// listen reads the answers until the output ends.
func (pr *process) listen() {
	defer close(pr.silent)
	defer pr.retire()
	lines := lineReader{from: bufio.NewReaderSize(pr.stdout, 64<<10)}
	dec := jsontext.NewDecoder(&bytes.Buffer{}, lenient)
	for {
		line, whole, err := lines.next()
		if line = bytes.TrimSpace(line); len(line) > 0 && (whole || jsontext.Value(line).IsValid()) {
			pr.receive(dec, line, lines.tooLong)
		} else if len(line) > 0 {
			pr.reject(line) // an incomplete answer
		}
		if err != nil {
			return // the end, or the pipe is closed
		}
	}
}

// receive gives a line to the call with its task_id.
func (pr *process) receive(dec *jsontext.Decoder, line []byte, tooLong bool) {
	id := taskOf(dec, line)
	if !tooLong && pr.isInterim(envelope.ID(id), line) {
		return
	}
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
		pr.reject(line)
	case c == nil: // too late
	case tooLong:
		c.events <- event{err: ErrTooLong}
		<-pr.room
	default:
		c.events <- event{line: bytes.Clone(line)}
		<-pr.room
	}
}

// isInterim gives a line to its call, and reports whether the call waits for another one.
func (pr *process) isInterim(id envelope.ID, line []byte) bool {
	pr.mu.Lock()
	c := pr.asked[id]
	pr.mu.Unlock()
	return c != nil && c.Interim != nil && c.Interim(line)
}

// reject counts a line that answers nothing. It reports the first, but not its text, which
// may contain data of a task.
func (pr *process) reject(line []byte) {
	pr.mu.Lock()
	pr.strayLines++
	first := pr.strayLines == 1
	pr.mu.Unlock()
	if first {
		pr.pool.notice(fmt.Errorf("worker %d printed a line of %d bytes that answers nothing", pr.pid, len(line)))
	}
}

// taskOf returns the task_id of an object; "" if there is none, or the text before it isn't
// JSON. It doesn't check the rest.
func taskOf(dec *jsontext.Decoder, line []byte) string {
	dec.Reset(bytes.NewBuffer(line), lenient)
	if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '{' {
		return ""
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}
		if name.String() == "task_id" {
			break
		}
		if dec.SkipValue() != nil {
			return ""
		}
	}
	id, err := dec.ReadToken()
	if err != nil || id.Kind() != '"' {
		return ""
	}
	return id.String()
}

// A lineReader reads lines in bounded memory.
type lineReader struct {
	from    *bufio.Reader
	long    []byte // a line that is longer than the buffer of from
	tooLong bool   // the last line was cut
}

// next returns the next line, which is valid until the next call. Whole says that it had a
// newline. An error comes with the text before it.
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

// maxTail limits the stored end of stderr, in bytes.
const maxTail = 4 << 10

// A tail is the end of a text. One goroutine writes it; others may read it afterwards.
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
			return // the end, or the pipe is closed
		}
	}
}
