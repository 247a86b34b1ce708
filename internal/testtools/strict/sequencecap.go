package strict

import (
	"errors"
	"slices"
)

// cancelledCode is the error_code by which a delegator stops a task.
const cancelledCode = 499

// receiveCAP takes one message of an inbox. In CAP everybody may send a message
// to everybody at any time, so only errors and delegations have an order. A message
// may follow an error_response: the delegating agent may have had the task tried again.
func (s *sequence) receiveCAP(m message) error {
	about := entry(s.capTasks, m.Task+" "+m.Sender)
	switch {
	case m.Type == "delegation_notice" && s.capTasks[m.Task] != nil:
		return errors.New("it is a second delegation of that task")
	case m.Type == "delegation_notice":
		s.capTasks[m.Task] = new(exchange)
	case m.Type == "message":
		about.ended = false
	case m.Type == "error_response" && m.Code == cancelledCode && s.capTasks[m.Task] != nil && !s.delegated(m):
		if about.cancelled {
			return errors.New("it is a second cancellation")
		}
		about.cancelled = true
	case m.Type == "error_response":
		return s.failed(m, about)
	}
	return nil
}

// delegated reports whether the owner delegated the task of a message to its sender.
func (s *sequence) delegated(m message) bool {
	return slices.ContainsFunc(s.capSent[m.Task], func(sent message) bool {
		return sent.Type == "delegation_notice" && sent.Recipient == m.Sender
	})
}

// failed takes an error_response: the end of what the owner delegated to its
// sender, or the answer to another line of the owner.
func (s *sequence) failed(m message, about *exchange) error {
	if s.delegated(m) {
		if about.ended {
			return errors.New("it is a second error_response")
		}
		about.ended = true
		return nil
	}
	answers := entry(s.capTasks, "answers to "+m.Task)
	if answers.refusals++; answers.refusals <= len(s.capSent[m.Task]) {
		return nil
	}
	if s.broken--; s.broken < 0 {
		return errors.New("it answers nothing that was sent")
	}
	return nil
}
