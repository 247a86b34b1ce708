package store

import (
	"maps"
	"slices"
	"sync"
	"unique"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A heldTask is the part of a held task that is kept in memory. Any number of tasks may be
// held, and a row of the ledger is five times as large.
type heldTask struct {
	task.Position
	id             envelope.ID
	Agent          unique.Handle[string] // shared by the tasks of one agent
	InBackoff      bool                  // held only for a pause between attempts
	Budget         bool                  // held until other tasks release a part of a budget
	Paused         bool                  // held because its agent is paused, perhaps among other reasons
	Limited        bool                  // held because a provider has reached a usage limit, likewise
	Login          bool                  // held because its agent needs a login
	Unbound        bool                  // held until its agent is chosen
	Waiting        bool                  // in the inbox of its agent
	suspended      bool                  // held until a message arrives
	conflictLogged bool                  // an event for the conflicting file in place of its result exists
}

// A HeldSet knows the held tasks, so that a look can find result files for them without a query
// to the ledger.
type HeldSet struct {
	mu              sync.Mutex // guards the fields below
	tasks           map[int64]heldTask
	unbound         int                           // how many of them are Unbound
	waiting, logins map[unique.Handle[string]]int // how many of an agent are Waiting, and Login: routing asks often
}

func newHeldSet() *HeldSet {
	return &HeldSet{
		tasks:   map[int64]heldTask{},
		waiting: map[unique.Handle[string]]int{}, logins: map[unique.Handle[string]]int{},
	}
}

// Add adds a task that is held, waits for its agent, or is in review.
func (h *HeldSet) Add(row task.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(h.tasks[row.Seq], -1)
	h.tasks[row.Seq] = heldTask{
		Position: task.Position{Seq: row.Seq, Priority: row.Priority}, id: row.ID, Agent: unique.Make(row.Agent),
		InBackoff: InBackoff(row), Budget: row.WaitsForBudget(),
		Paused:  row.State == task.Held && slices.Contains(row.Reasons, task.Paused),
		Limited: row.State == task.Held && slices.Contains(row.Reasons, task.ProviderLimit), suspended: conversation.Suspended(row),
		Login:   row.State == task.Held && slices.Contains(row.Reasons, task.AuthRequired),
		Unbound: core.Unbound(row), Waiting: row.State == task.Waiting,
	}
	h.count(h.tasks[row.Seq], 1)
}

// count adds n to what a task counts in.
func (h *HeldSet) count(t heldTask, n int) {
	if t.Unbound {
		h.unbound += n
	}
	if t.Waiting {
		h.waiting[t.Agent] += n
	}
	if t.Login {
		h.logins[t.Agent] += n
	}
}

// Remove removes a task, and returns its entry if it was held.
func (h *HeldSet) Remove(seq int64) (heldTask, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	delete(h.tasks, seq)
	h.count(task, -1)
	return task, held
}

// InInbox returns how many tasks the inbox of an agent has, with those that are on their way there.
func (h *HeldSet) InInbox(agent string, underway []int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.waiting[unique.Make(agent)]
	for _, seq := range underway {
		if !h.tasks[seq].Waiting {
			n++
		}
	}
	return n
}

// IsInInbox reports whether a task is in the inbox of its agent.
func (h *HeldSet) IsInInbox(seq int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tasks[seq].Waiting
}

// NeedsLogin reports whether a task is held because its agent needs a login.
func (h *HeldSet) NeedsLogin(agent string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logins[unique.Make(agent)] > 0
}

// MarkConflictLogged records that the caller logs an event about a file in place of a task's
// result. It reports false when such an event exists already, or when the task is not held.
func (h *HeldSet) MarkConflictLogged(seq int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	isNew := held && !task.conflictLogged
	if isNew {
		task.conflictLogged = true
		h.tasks[seq] = task
	}
	return isNew
}

// Names returns the Seqs of the held tasks, and their ids in the same order.
func (h *HeldSet) Names() (seqs []int64, ids []envelope.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seqs, ids = make([]int64, 0, len(h.tasks)), make([]envelope.ID, 0, len(h.tasks))
	for seq, task := range h.tasks {
		seqs, ids = append(seqs, seq), append(ids, task.id)
	}
	return seqs, ids
}

// AnyUnbound reports whether a task waits for the choice of its agent.
func (h *HeldSet) AnyUnbound() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unbound > 0
}

// Unbound returns the Seqs of the tasks that wait for the choice of their agents, in order.
func (h *HeldSet) Unbound() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unbound == 0 {
		return nil
	}
	var unbound []heldTask
	for _, task := range h.tasks {
		if task.Unbound {
			unbound = append(unbound, task)
		}
	}
	return InOrder(unbound)
}

// InOrder sorts held tasks and returns their Seqs: the highest priority first, then the oldest.
func InOrder(held []heldTask) (seqs []int64) {
	slices.SortFunc(held, func(a, b heldTask) int { return a.Compare(b.Position) })
	for _, task := range held {
		seqs = append(seqs, task.Seq)
	}
	return seqs
}

// All returns all held tasks, in no order.
func (h *HeldSet) All() []heldTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.tasks))
}

// InBackoff reports whether a task is held only for a pause between attempts.
func InBackoff(row task.Task) bool {
	return row.State == task.Held && slices.Equal(row.Reasons, []task.Reason{task.Capacity})
}
