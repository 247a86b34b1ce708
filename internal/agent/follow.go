package agent

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"mailboxd/internal/runner"
	"mailboxd/internal/task"
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
func (g *Agent) readTranscript(j task.Job) (answer, error) {
	f := follower{format: g.binding.Output}
	err := f.look(j.Dir, true)
	if err == nil && !f.said.done {
		err = f.takeObject(j.Dir)
	}
	switch {
	case runner.Passing(err):
		return answer{}, fmt.Errorf("read answer: %w", err)
	case err != nil:
		return answer{}, errNothing
	}
	return f.said.result(j)
}

// takeObject takes all that was printed for one object, if it is one. The error
// is runner.Passing.
func (f *follower) takeObject(dir string) error {
	file, err := openRegular(dir, runner.StdoutFile)
	if err == nil {
		defer file.close()
		var object []byte
		if object, err = readObject(file); err == nil {
			f.said.hear(f.format, object)
		}
	}
	if runner.Passing(err) {
		return err
	}
	return nil
}
