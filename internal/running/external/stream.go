package external

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// errEnded says that a stream ended without a result.
var errEnded = fmt.Errorf("the stream of events ended without a result: %w", io.ErrUnexpectedEOF)

// stream reads server-sent events until one is the result. Events with other names than progress
// and result are skipped.
func (h *host) stream(w *watched, body io.Reader) Result {
	lines := bufio.NewReaderSize(w.reader(body), 64<<10)
	var event event
	for {
		line, err := readLine(lines)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errEnded
			}
			return h.broken(w, err, true)
		}
		if whole := event.add(line); !whole {
			h.alive(line)
			continue
		}
		switch event.name {
		case "progress":
			h.progress(event.data)
		case "result":
			return h.answer(event.data)
		}
		event.name, event.data = "", nil
	}
}

// readLine reads a line without its end. The reader below limits its length.
func readLine(lines *bufio.Reader) ([]byte, error) {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return nil, err // of an event that isn't whole
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// An event is one of a stream: https://html.spec.whatwg.org/multipage/server-sent-events.html.
type event struct {
	name string
	data []byte
}

// add adds a line, and reports whether it ends an event with data.
func (e *event) add(line []byte) bool {
	if len(line) == 0 {
		whole := e.data != nil
		if !whole {
			e.name = ""
		}
		return whole
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name = string(value)
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		if e.data == nil {
			e.data = []byte{}
		}
	}
	return false
}

// alive notes a comment, with which a service shows that it is at work.
func (h *host) alive(line []byte) {
	if len(line) > 0 && line[0] == ':' {
		h.note([]byte("{}"))
	}
}

// progress passes on how far a service is: pct, note and cost_used, and no other member.
func (h *host) progress(text []byte) {
	var all, known map[string]jsontext.Value
	if json.Unmarshal(text, &all, jsontext.AllowInvalidUTF8(true)) != nil {
		all = nil
	}
	known = map[string]jsontext.Value{}
	for _, name := range []string{"pct", "note", "cost_used"} {
		if all[name] != nil {
			known[name] = all[name]
		}
	}
	line, err := json.Marshal(known, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		h.note(line)
	}
}

// note appends a line to the file for progress. What can't be written isn't shown.
func (h *host) note(line []byte) {
	if h.Progress == "" {
		return
	}
	file, err := os.OpenFile(h.Progress, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.Write(append(h.redact(line), '\n'))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		_, _ = fmt.Fprintf(h.Stderr, "write progress: %v\n", err)
	}
}
