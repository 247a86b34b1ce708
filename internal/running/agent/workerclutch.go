package agent

import (
	"errors"
	"sync"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// errNotTerminal is what is wrong with a message of a worker that neither ends its task nor
// says how far it is.
var errNotTerminal = errors.New("a worker says task.accept and task.progress, and ends with task.result, task.error, task.timeout or task.cancel")

// clutchLine returns a task as one task.request, and the task_id in it.
func clutchLine(t envelope.Task) ([]byte, envelope.ID, error) {
	line, err := oneLine(dialect.Translate(t, envelope.Clutch))
	if err != nil {
		return nil, "", err
	}
	codec, _ := dialect.Of(envelope.Clutch)
	m, findings := codec.Decode(line, envelope.Strict)
	if err := findings.Refusals(); len(err) > 0 {
		return nil, "", errors.New(short(err.String()))
	}
	return line, envelope.ID(m.Clutch.TaskID), nil
}

// interim returns the function that reads what a worker says before it ends a task; nil for
// a worker that only answers.
func (g *Agent) interim(j task.Job) func(line []byte) bool {
	if g.binding.Speaks() != envelope.Clutch {
		return nil
	}
	var mu sync.Mutex // guards r: a process that is given up may still print
	r := reporter{job: j, speaks: envelope.Clutch, now: time.Now}
	return func(line []byte) bool {
		codec, _ := dialect.Of(envelope.Clutch)
		m, findings := codec.Receive(line, j.Task)
		if findings.Refused() || m.Act != envelope.Accepts && m.Act != envelope.Reports && m.Act != envelope.Waits {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		r.readLine(line)
		r.flush(false)
		return true
	}
}

// decodeLine decodes the line with which a worker answers.
func (g *Agent) decodeLine(j task.Job, line []byte) (answer, error) {
	if g.binding.Speaks() == envelope.AINL {
		return decodeAnswer(line)
	}
	reply, err := g.decodeMessages(j, line)
	if err == nil && (reply.hold != "" || len(reply.messages) > 0) {
		return answer{}, errNotTerminal
	}
	return reply, err
}
