package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"mailboxd/internal/decisions/task"
)

// Apply applies events to a State. It ignores events of a task that the State doesn't hold.
// Call Number first, so that added tasks have their Seq.
func Apply(s *State, events []Event) {
	for i := range events {
		e := &events[i]
		if added, ok := e.Change.(*Added); ok {
			added.apply(s, nil)
			continue
		}
		if t := s.tasks[e.Task]; t != nil && e.Change != nil {
			e.Change.apply(s, t)
		}
	}
}

// Number sets the Seq of the added task in all events.
func Number(events []Event, seq int64) {
	for i := range events {
		e := &events[i]
		if e.Task != New {
			continue
		}
		e.Task = seq
		switch c := e.Change.(type) {
		case *Added:
			c.Task.Seq = seq
		case *Asked:
			c.Consent.Task = seq
		case *RunIntended:
			c.Run.Task = seq
		}
	}
}

func (c *Added) apply(s *State, _ *Task) {
	if before := s.Latest(c.Task.ID); before != nil {
		before.Latest = false
	}
	added := c.Task
	added.Latest = true
	s.Add(Task{Task: added})
}

func (c *Moved) apply(_ *State, t *Task) {
	t.State, t.Reasons, t.Until, t.Due = c.To, c.Reasons, c.Until, c.Due
	t.Attempt, t.Agent = cmp.Or(c.Attempt, t.Attempt), cmp.Or(c.Agent, t.Agent)
	t.Status, t.Kind = cmp.Or(c.Status, t.Status), cmp.Or(c.Kind, t.Kind)
	if c.Result != nil {
		sum := sha256.Sum256(c.Result)
		t.ResultSum = hex.EncodeToString(sum[:])
	}
}

func (c *Asked) apply(_ *State, t *Task) {
	consent := c.Consent
	t.setConsent(&consent)
}

func (c *Concluded) apply(_ *State, t *Task) {
	consent := c.Consent
	t.setConsent(&consent)
}

func (c *RunIntended) apply(_ *State, t *Task) {
	run := c.Run
	t.Run = &run
}

func (c *RunEnded) apply(_ *State, t *Task) {
	if t.Run == nil || t.Run.Attempt != c.Run.Attempt {
		return
	}
	run := *t.Run
	run.Started, run.Finished, run.ExitCode, run.Cause, run.Settled = c.Run.Started, c.Run.Finished, c.Run.ExitCode, c.Run.Cause, true
	t.Run, t.Began = &run, t.Began || !run.Started.IsZero()
}

func (c *RunVoid) apply(_ *State, t *Task) {
	if t.Run != nil && t.Run.Attempt == c.Run.Attempt {
		t.Run = nil
	}
}

func (c *RunReleased) apply(_ *State, t *Task) {
	if t.Run != nil && t.Run.Attempt == c.Run.Attempt {
		run := *t.Run
		run.Settled = true
		t.Run = &run
	}
}

func (*Settled) apply(_ *State, t *Task) { t.Put, t.Delivered = true, true }

func (*Offered) apply(_ *State, t *Task) { t.Token = "" }

func (c *Leased) apply(_ *State, t *Task) {
	t.Token, t.Began = c.Token, true
}

// moved returns the Moved event that makes a change to a task.
func moved(t *Task, c task.Change) *Moved {
	return &Moved{From: t.State, FromAttempt: t.Attempt, Change: c}
}
