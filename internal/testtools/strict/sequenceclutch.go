package strict

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A clutchMessage holds the members of a line that the order of messages depends on.
type clutchMessage struct {
	Version string `json:"v"`
	ID      string `json:"id"`
	Type    string `json:"type"`
	Task    string `json:"task_id"`
	From    struct {
		AgentID string `json:"agent_id"`
	} `json:"from"`
	Meta struct {
		Cause string `json:"causation_id"`
	} `json:"meta"`
	Payload json.RawMessage `json:"payload"`

	line string
}

// readClutch reads what it can of a line, and reports whether it is said in Clutch.
func readClutch(line []byte) (m clutchMessage, ok bool) {
	m.line = string(line)
	_ = json.Unmarshal(line, &m) // members of another type are left out
	return m, strings.HasPrefix(m.Version, "clutch/")
}

// A clutchExchange is a task and what its requester was told of it so far.
type clutchExchange struct {
	requests             int // different messages that ask for it
	accepted, progressed bool
	ended                string // the type of the terminal message
	refusals             int    // of other messages that ask for it, or are about it
	stopped              bool   // the owner, whose task it is, was told to stop
}

// clutchSequence is what was said in Clutch in an inbox that is being read.
type clutchSequence struct {
	tasks map[string]*clutchExchange // by task_id: those that the owner requested
	ids   map[string]string          // the line that has the id
	sent  map[string]clutchMessage   // by id: what the owner sent
	given map[string]*clutchExchange // by task_id: those that the owner was asked for

	lines    map[string]bool // that the owner sent
	answered map[string]bool // by id: messages that ask for no task and had an answer
}

func newClutchSequence() clutchSequence {
	return clutchSequence{
		tasks: map[string]*clutchExchange{}, ids: map[string]string{}, sent: map[string]clutchMessage{}, given: map[string]*clutchExchange{},
		lines: map[string]bool{}, answered: map[string]bool{},
	}
}

// send adds a message that the owner sent. A task whose name is no safe file name is told of
// by a digest of it.
func (s *clutchSequence) send(owner string, m clutchMessage) {
	if s.lines[m.line] || strings.TrimPrefix(m.From.AgentID, "agent:") != strings.TrimPrefix(owner, "agent:") {
		return
	}
	s.lines[m.line] = true
	if m.ID != "" {
		s.sent[m.ID] = m
	}
	sum := sha256.Sum256([]byte(m.Task))
	e := s.tasks[m.Task]
	if e == nil {
		e = new(clutchExchange)
		s.tasks[m.Task], s.tasks["h-"+hex.EncodeToString(sum[:16])] = e, e
	}
	if m.Type == "task.request" || m.Type == "PLAN" {
		e.requests++
	}
}

// receive takes one message of the inbox.
func (s *clutchSequence) receive(m clutchMessage) error {
	if first, known := s.ids[m.ID]; known {
		return fmt.Errorf("its id is that of %s", first)
	}
	s.ids[m.ID] = m.line
	about := s.tasks[m.Task]
	switch m.Type {
	case "task.request":
		s.given[m.Task] = new(clutchExchange)
	case "task.accept", "task.progress", "task.result", "task.error", "task.timeout":
		return s.answer(about, m)
	case "task.cancel":
		if given := s.given[m.Task]; given != nil {
			if given.stopped {
				return errors.New("it is a second task.cancel")
			}
			given.stopped = true
			return nil
		}
		return s.answer(about, m)
	case "tool.result", "tool.error":
		if called, sent := s.sent[m.Meta.Cause]; !sent || called.Type != "tool.call" {
			return errors.New("it answers a tool.call that was not sent")
		}
	}
	return nil
}

// answer takes what is said about a task of the owner: task.accept, then any task.progress,
// then exactly one terminal message. A further message that asked for the task, or was about
// it, may be refused by an error of its own.
func (s *clutchSequence) answer(e *clutchExchange, m clutchMessage) error {
	cause, sent := s.sent[m.Meta.Cause]
	switch {
	case m.Type == "task.error" && sent && cause.Type != "task.request" && cause.Type != "PLAN":
		if s.answered[m.Meta.Cause] {
			return errors.New("it is a second answer to that message")
		}
		s.answered[m.Meta.Cause] = true
		return nil
	case e == nil:
		return errors.New("it is about a task that its reader never named")
	case e.requests == 0 && m.Type != "task.error":
		return errors.New("it is about a task that its reader did not request")
	case e.requests == 0:
		e.requests = 1 // of a line that nobody can read
	}
	return e.advance(m)
}

// advance takes what is said about a task next.
func (e *clutchExchange) advance(m clutchMessage) error {
	again := e.ended == "task.error" || e.ended == "task.timeout" || e.requests > 1
	switch {
	case m.Type == "task.accept" && e.ended != "" && again:
		*e = clutchExchange{requests: e.requests, refusals: e.refusals, accepted: true}
	case m.Type == "task.error" && e.refusals < e.requests-1 && (e.ended != "" || strings.Contains(string(m.Payload), `"CONFLICT"`)):
		e.refusals++
	case e.ended != "":
		return fmt.Errorf("it is a %s after the end", m.Type)
	case m.Type == "task.accept" && e.progressed:
		return errors.New("it is a task.accept after task.progress")
	case m.Type == "task.accept" && e.accepted:
		return errors.New("it is a second task.accept")
	case m.Type == "task.accept":
		e.accepted = true
	case m.Type == "task.progress" && !e.accepted:
		return errors.New("it is a task.progress before task.accept")
	case m.Type == "task.progress":
		e.progressed = true
	default:
		e.ended = m.Type
	}
	return nil
}
