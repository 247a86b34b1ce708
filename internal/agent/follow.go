package agent

import (
	"bytes"
	"errors"
	"time"

	"mailboxd/internal/runner"
)

var (
	errUnfinished = errors.New("the agent's output ends before it says how it ended")
	errOverstays  = errors.New("it had answered and did not exit")
)

// A follower reads what a program of a profile prints, as it goes on.
type follower struct {
	format Format
	said   transcript
	offset int64     // behind the last whole line
	long   bool      // the offset is inside a line that is too long
	ended  time.Time // when we found that it had said how it ended
}

// look reads what is new. The last line counts without its end when there is
// nothing more to come.
func (f *follower) look(dir string, last bool) error {
	file, err := openRegular(dir, runner.StdoutFile)
	if err != nil {
		return err
	}
	defer file.close()
	for f.offset < file.size {
		text, err := file.read(f.offset, maxWhole)
		if err != nil {
			return err
		}
		n := bytes.LastIndexByte(text, '\n') + 1
		switch {
		case n > 0:
		case len(text) == maxWhole, last && len(text) > 0:
			n = len(text)
		default:
			return nil // half a line, or a file that was cut short since
		}
		f.take(text[:n])
		f.offset += int64(n)
	}
	return nil
}

// take hears lines. One that is too long is passed over.
func (f *follower) take(text []byte) {
	for line := range bytes.Lines(text) {
		whole := line[len(line)-1] == '\n'
		if !f.long && (whole || len(text) < maxWhole) {
			f.said.hear(f.format, bytes.TrimSpace(line))
		}
		f.long = !whole && len(text) == maxWhole
	}
	switch {
	case !f.said.done:
		f.ended = time.Time{}
	case f.ended.IsZero():
		f.ended = time.Now()
	}
}

// readTranscript reads all that a program printed: its events, or the one
// object over several lines that some print instead.
func (g *Agent) readTranscript(j Job) (answer, error) {
	f := follower{format: g.binding.Output}
	if err := f.look(j.Dir, true); err != nil {
		return answer{}, errNothing
	}
	if !f.said.done {
		if file, err := openRegular(j.Dir, runner.StdoutFile); err == nil {
			defer file.close()
			if object, err := readObject(file); err == nil {
				f.said.hear(f.format, object)
			}
		}
	}
	return f.said.result(j)
}
