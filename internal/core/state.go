package core

import (
	"cmp"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A Config holds the choices of the operator that decisions need.
type Config struct {
	ApprovalTTL time.Duration // how long an approver may take, and how long an approval lasts; 0: without end
}

// A Task is a revision of a task with what decisions about it need.
type Task struct {
	task.Task
	Began bool          // an attempt was started, so the task isn't new to its agent
	Start *task.Consent // the latest approval of its start that was asked for; nil: none
	Show  *task.Consent // the latest approval of its answer that was asked for; nil: none
	Run   *task.Run     // the run of its current attempt; nil: none
	Token string        // what the program that claimed it last has to show; "" for none
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

// Add adds a task, or replaces the one that has its Seq.
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

// Task returns the task that has a Seq; nil for none.
func (s *State) Task(seq int64) *Task { return s.tasks[seq] }

// Latest returns the latest revision of an id; nil for none.
func (s *State) Latest(id envelope.ID) *Task {
	all := s.ids[id]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Seen is a task as it was when the facts of a command were gathered.
type Seen struct {
	State   task.State
	Attempt int
	Reasons []task.Reason
	Until   time.Time // of a task that waits for its agent: the end of its lease
}

// See returns how a task is now.
func See(t task.Task) Seen {
	return Seen{State: t.State, Attempt: t.Attempt, Reasons: t.Reasons, Until: t.Until}
}

// is reports whether a task still is as it was seen.
func (was Seen) is(t *Task) bool {
	return t.State == was.State && t.Attempt == was.Attempt && slices.Equal(t.Reasons, was.Reasons) &&
		(t.State != task.Waiting || t.Until.Equal(was.Until)) // or a program has claimed it
}

// find returns the task of a command, if it still is as it was seen.
func (s *State) find(seq int64, was Seen) (*Task, error) {
	t := s.tasks[seq]
	if t == nil || !was.is(t) {
		return nil, ErrStale
	}
	return t, nil
}
