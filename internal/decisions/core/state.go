package core

import (
	"cmp"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A Config holds the operator's settings that decisions need.
type Config struct {
	ApprovalTTL time.Duration // the lifetime of a request for approval, and of an approval; 0: unlimited
	MaxPriority int           // the highest priority that a request can have
}

// A Task is a revision of a task with the facts for decisions.
type Task struct {
	task.Task
	Began bool            // an attempt was started; the agent knows the task
	Start *task.Consent   // the latest approval of its start; nil: none
	Show  *task.Consent   // the latest approval of its answer; nil: none
	Calls []*task.Consent // about calls of its runs, the oldest first
	Run   *task.Run       // the run of its current attempt; nil: none
	Token string          // of the latest claim; "" for none
}

// A State holds tasks. The zero value isn't ready: use NewState. It isn't safe for
// concurrent use.
type State struct {
	tasks map[int64]*Task
	ids   map[envelope.ID][]*Task // by id, the oldest revision first
	last  int64                   // the highest Seq
}

// NewState returns a State with tasks.
func NewState(tasks ...Task) *State {
	s := &State{tasks: map[int64]*Task{}, ids: map[envelope.ID][]*Task{}}
	for _, t := range tasks {
		s.Add(t)
	}
	return s
}

// Add adds a task, or replaces the one with its Seq.
func (s *State) Add(t Task) {
	own, known := s.tasks[t.Seq]
	if known {
		*own = t
		return
	}
	own = &t
	s.tasks[t.Seq] = own
	s.last = max(s.last, t.Seq)
	at, _ := slices.BinarySearchFunc(s.ids[t.ID], t.Revision, func(have *Task, revision int) int { return cmp.Compare(have.Revision, revision) })
	s.ids[t.ID] = slices.Insert(s.ids[t.ID], at, own)
}

// Task returns the task with a Seq; nil for none.
func (s *State) Task(seq int64) *Task { return s.tasks[seq] }

// Latest returns the latest revision of an id; nil for none.
func (s *State) Latest(id envelope.ID) *Task {
	all := s.ids[id]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Seen is the part of a task that must not change between gathering facts and a decision.
type Seen struct {
	State   task.State
	Attempt int
	Agent   string
	Reasons []task.Reason
	Until   time.Time // of a waiting task: the end of its lease
}

// See returns the Seen of a task.
func See(t task.Task) Seen {
	return Seen{State: t.State, Attempt: t.Attempt, Agent: t.Agent, Reasons: t.Reasons, Until: t.Until}
}

// is reports whether a task hasn't changed since it was seen.
func (was Seen) is(t *Task) bool {
	return t.State == was.State && t.Attempt == was.Attempt && t.Agent == was.Agent && slices.Equal(t.Reasons, was.Reasons) &&
		(t.State != task.Waiting || t.Until.Equal(was.Until)) // or a program has claimed it
}

// find returns a task if it hasn't changed since it was seen.
func (s *State) find(seq int64, was Seen) (*Task, error) {
	t := s.tasks[seq]
	if t == nil || !was.is(t) {
		return nil, ErrStale
	}
	return t, nil
}
