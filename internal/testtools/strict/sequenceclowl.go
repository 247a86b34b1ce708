package strict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// receiveCLowl takes one message of an inbox, whose mid must be its own.
func (s *sequence) receiveCLowl(m message) error {
	if first, known := s.mids[m.MID]; known {
		return fmt.Errorf("its mid is that of %s", first)
	}
	s.mids[m.MID] = m.line
	switch m.P {
	case "ACK", "PROG", "DONE", "ERR":
		return s.answer(m)
	case "CAPS":
		if m.PID != "" {
			return s.once(m, m.PID+" "+m.From, "CAPS")
		}
	case "INF":
		if m.Body.T == "status" && s.isSent(m.PID, "QRY") {
			return s.once(m, m.PID, "QRY")
		}
	case "CNCL":
		return s.stopped(m)
	}
	return nil
}

// isSent reports whether the owner sent a message of that name and one of some
// performatives.
func (s *sequence) isSent(mid string, performatives ...string) bool {
	return slices.ContainsFunc(s.sent[mid], func(m message) bool { return slices.Contains(performatives, m.P) })
}

// once takes an answer that may come once, to a message of a performative.
func (s *sequence) once(m message, name, to string) error {
	switch e := entry(s.exchanges, name); {
	case !s.isSent(m.PID, to):
		return fmt.Errorf("it answers a %s that was not sent", to)
	case e.ended:
		return errors.New("it is a second answer")
	default:
		e.ended = true
	}
	return nil
}

// answer takes what the receiver of a message says to its sender.
func (s *sequence) answer(m message) error {
	if m.PID == "" {
		if s.broken--; m.P != "ERR" || s.broken < 0 {
			return errors.New("it answers nothing")
		}
		return nil
	}
	if len(s.sent[m.PID]) == 0 {
		return errors.New("it answers a message that was not sent")
	}
	e := entry(s.exchanges, m.PID)
	if e.refusals < len(s.sent[m.PID])-1 { // another message of that name may have its answer
		switch {
		case m.P == "ERR" && (e.ended || m.Body.D.Code == "E011"):
			e.refusals++
			return nil
		case m.P == "ACK" && e.ended:
			*e = exchange{refusals: e.refusals + 1}
		}
	}
	if s.isSent(m.PID, "CNCL") {
		return s.answerCancel(m, e)
	}
	if m.P != "ERR" && !s.isSent(m.PID, "REQ", "DLGT", "QRY") {
		return errors.New("it answers what asked for no work")
	}
	return e.advance(m)
}

// advance takes what is said about a request next.
func (e *exchange) advance(m message) error {
	switch {
	case m.P == "ACK" && e.ended && e.again:
		*e = exchange{acked: true, refusals: e.refusals}
	case e.ended:
		return fmt.Errorf("it is a %s after the end", m.P)
	case m.P == "ACK" && e.acked:
		return errors.New("it is a second ACK")
	case m.P == "ACK" && e.working:
		return errors.New("it is an ACK after PROG")
	case m.P == "ACK":
		e.acked = true
	case m.P == "PROG" && !e.acked:
		return errors.New("it is a PROG before ACK")
	case m.P == "PROG":
		e.working = true
	default:
		e.ended, e.again = true, m.P == "ERR" && m.Body.D.Retry
	}
	return nil
}

// answerCancel takes the one answer that a CNCL has. After an ACK, there is
// nothing more to say about what it cancelled.
func (s *sequence) answerCancel(m message, e *exchange) error {
	switch {
	case e.ended:
		return errors.New("it is a second answer to a CNCL")
	case m.P != "ACK" && m.P != "ERR":
		return fmt.Errorf("it answers a CNCL with %s", m.P)
	}
	e.ended = true
	if m.P == "ERR" {
		return nil
	}
	if m.Body.D.Status != "cancelled" {
		return errors.New("it does not say that it is cancelled")
	}
	for _, cancel := range s.sent[m.PID] {
		for _, name := range named(cancel) {
			if s.isSent(name, "REQ", "DLGT") {
				entry(s.exchanges, name).ended = true
			}
		}
	}
	return nil
}

// named are the messages that a CNCL may speak of.
func named(m message) []string {
	return []string{m.PID, m.Body.D.TaskID, m.Body.D.MID}
}

// stopped takes a CNCL of what the owner was asked for.
func (s *sequence) stopped(m message) error {
	for _, name := range named(m) {
		if s.mids[name] == "" {
			continue
		}
		e := entry(s.exchanges, "received "+name)
		if e.cancelled {
			return errors.New("it is a second CNCL")
		}
		e.cancelled = true
		return nil
	}
	return fmt.Errorf("it cancels %q, which nobody asked for", cmp.Or(named(m)...))
}
