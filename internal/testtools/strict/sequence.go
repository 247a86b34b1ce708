package strict

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Sequence checks the inbox of one participant, oldest line first, against what
// that participant sent: each answer has a request, a request has one ACK and
// then its PROGs, one DONE or ERR ends it, and nothing about it follows. In Clutch
// these are task.accept, task.progress, and one of task.result, task.error,
// task.timeout and task.cancel. The
// first fault is returned; nil means there is none. The lines of an inbox must
// satisfy Line. A line that repeats an earlier one is skipped: a writer that was
// killed may append its last lines again. Lines of sent from other participants
// are ignored, in whatever order they come.
func Sequence(owner string, sent, inbox [][]byte) error {
	s := sequence{
		sent: map[string][]message{}, exchanges: map[string]*exchange{}, mids: map[string]string{},
		capSent: map[string][]message{}, capTasks: map[string]*exchange{},
		clutch: newClutchSequence(),
	}
	for _, line := range sent {
		s.send(owner, line)
	}
	seen := map[string]bool{}
	for _, line := range inbox {
		if seen[string(line)] {
			continue
		}
		seen[string(line)] = true
		if err := s.receive(line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// A message holds the members of a line that the order of messages depends on.
// CLowl's and CAP's do not overlap.
type message struct {
	MID  string `json:"mid"`
	PID  string `json:"pid"`
	P    string `json:"p"`
	From string `json:"from"`
	Body struct {
		T string `json:"t"`
		D struct {
			Code   string `json:"code"`
			Retry  bool   `json:"retry"`
			Status string `json:"status"`
			TaskID string `json:"task_id"`
			MID    string `json:"mid"`
		} `json:"d"`
	} `json:"body"`

	Type      string `json:"type"`
	Task      string `json:"task_id"`
	Sender    string `json:"sender_id"`
	Recipient string `json:"recipient_id"`
	Code      int    `json:"error_code"`

	line string
}

// read reads what it can of a line, which need not be valid.
func read(line []byte) message {
	m := message{line: string(line)}
	_ = json.Unmarshal(line, &m) // members of another type are left out
	for name, to := range map[string]*string{"mid": &m.MID, "from": &m.From, "task_id": &m.Task, "sender_id": &m.Sender} {
		if *to == "" {
			if found := regexp.MustCompile(`"` + name + `"\s*:\s*"([^"]*)"`).FindSubmatch(line); found != nil {
				*to = string(found[1])
			}
		}
	}
	return m
}

// An exchange is a request and what was said about it so far.
type exchange struct {
	acked, working bool
	ended          bool // by DONE, by ERR, by the ACK of a CNCL, or by an error_response
	again          bool // the ERR that ended it allows another attempt
	refusals       int  // of other messages of the same name
	cancelled      bool // the receiver was told to stop
}

// A sequence is an inbox that is being read.
type sequence struct {
	sent      map[string][]message // of CLowl, by mid: those of different content
	exchanges map[string]*exchange // of CLowl, by the mid of what was asked
	mids      map[string]string    // of CLowl: the line that has it
	capSent   map[string][]message // by task_id
	capTasks  map[string]*exchange // by task_id, and sender
	broken    int                  // sent lines that name neither a message nor a task
	clutch    clutchSequence
}

// send adds a line that the owner sent, or anybody else.
func (s *sequence) send(owner string, line []byte) {
	if m, ok := readClutch(line); ok {
		s.clutch.send(owner, m)
		return
	}
	m := read(line)
	same := func(other message) bool { return other.line == m.line }
	switch bare := strings.TrimPrefix(owner, "agent:"); {
	case strings.TrimPrefix(m.From, "agent:") == bare && m.MID != "":
		if !slices.ContainsFunc(s.sent[m.MID], same) {
			s.sent[m.MID] = append(s.sent[m.MID], m)
		}
	case strings.TrimPrefix(m.Sender, "agent:") == bare && m.Task != "":
		if !slices.ContainsFunc(s.capSent[m.Task], same) {
			s.capSent[m.Task] = append(s.capSent[m.Task], m)
		}
	case m.From == owner || m.Sender == owner:
		s.broken++
	}
}

func (s *sequence) receive(line []byte) error {
	if m, ok := readClutch(line); ok {
		return s.clutch.receive(m)
	}
	m := read(line)
	switch {
	case m.P != "":
		return s.receiveCLowl(m)
	case m.Type != "":
		return s.receiveCAP(m)
	}
	return nil // AINL has requests only
}

func entry(all map[string]*exchange, name string) *exchange {
	if all[name] == nil {
		all[name] = new(exchange)
	}
	return all[name]
}
