package agent

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	events "mailboxd/internal/running/transcript"
)

var (
	errUnfinished  = errors.New("the agent's output ends before it says how it ended")
	errExitOverdue = errors.New("it had answered and did not exit")
	errNoProgress  = errors.New("its model made no progress")

	errToolViolation = errors.New("it used a tool against the rules")
)

// A follower reads the output of a profile's program while it runs.
type follower struct {
	format     Format
	transcript transcript
	offset     int64     // after the last whole line
	long       bool      // the offset is inside a line that is too long
	ended      time.Time // when the follower found the event of the program's end

	progressed time.Time // when the follower found the last event of the model or a tool
	waiting    string    // what the program has said since then of a provider that it tries again; "" for nothing

	printed time.Time      // when the program printed that event, of OpenCode, as the next two; zero: unknown
	refused events.Refusal // the last one in its log; zero: none
	logRead int64          // how much of the log was read, in bytes
}

// newFollower returns a follower of a run, at the beginning of its output.
func (g *Agent) newFollower(j task.Job) *follower {
	f := &follower{format: g.binding.Output}
	if j.Task.Continues() != "" {
		s, _ := readSessionFile(j.Dir)
		f.transcript.before = s.Tokens
	}
	return f
}

// poll reads new output. The last line counts without its newline if last is set.
func (f *follower) poll(dir string, last bool) error {
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
			return nil // an incomplete line, or the file was cut short
		}
		f.readLines(text[:n])
		f.offset += int64(n)
	}
	return nil
}

// readLines reads whole lines and skips one that is too long.
func (f *follower) readLines(text []byte) {
	for line := range bytes.Lines(text) {
		whole := line[len(line)-1] == '\n'
		if !f.long && (whole || len(text) < maxWhole) {
			f.readLine(bytes.TrimSpace(line))
		}
		f.long = !whole && len(text) == maxWhole
	}
	switch {
	case !f.transcript.done:
		f.ended = time.Time{}
	case f.ended.IsZero():
		f.ended = time.Now()
	}
}

// readLine reads a line, and whether the model or a tool goes on.
func (f *follower) readLine(line []byte) {
	f.transcript.readEvent(f.format, line)
	if !events.IsIdle(string(f.format), line) {
		f.progressed, f.waiting = time.Now(), ""
		f.readPrinted(line)
	} else if words := events.Waiting(string(f.format), line); words != "" {
		f.waiting = words
	}
}

// readTranscript reads the whole output of a program: its events, or one object over
// several lines.
func (g *Agent) readTranscript(j task.Job) (answer, error) {
	f := g.newFollower(j)
	err := f.poll(j.Dir, true)
	if err == nil && !f.transcript.done {
		err = f.readWholeObject(j.Dir)
	}
	switch {
	case runner.Passing(err):
		return answer{}, fmt.Errorf("read answer: %w", err)
	case err != nil:
		return answer{}, errNothing
	}
	if g.binding.Output == Codex {
		f.transcript.readCodexLog(j.Dir)
	}
	reply, err := f.transcript.result(j)
	if err == nil {
		g.addDenied(j, &reply, &f.transcript.uses)
	}
	return reply, err
}

// readWholeObject reads the output as one object, if it is one. The error is
// runner.Passing.
func (f *follower) readWholeObject(dir string) error {
	file, err := openRegular(dir, runner.StdoutFile)
	if err == nil {
		defer file.close()
		var object []byte
		if object, err = readObject(file); err == nil {
			f.transcript.readEvent(f.format, object)
		}
	}
	if runner.Passing(err) {
		return err
	}
	return nil
}
