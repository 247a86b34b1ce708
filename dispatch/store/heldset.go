package store

import (
	"maps"
	"slices"
	"sync"
	"unique"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// A heldTask is the part of a held task that is kept in memory. Any number of tasks may be
// held, and a row of the ledger is five times as large.
type heldTask struct {
	Seq            int64
	id             envelope.ID
	Agent          unique.Handle[string] // shared by the tasks of one agent
	InBackoff      bool                  // held only for a pause between attempts
	Budget         bool                  // held until other tasks release a part of a budget
	Paused         bool                  // held because its agent is paused, perhaps among other reasons
	Limited        bool                  // held because a provider has reached a usage limit, likewise
	suspended      bool                  // held until a message arrives
	conflictLogged bool                  // an event for the conflicting file in place of its result exists
}

// A HeldSet knows the held tasks, so that a look can find result files for them without a query
// to the ledger.
type HeldSet struct {
	mu    sync.Mutex // guards tasks
	tasks map[int64]heldTask
}

func newHeldSet() *HeldSet { return &HeldSet{tasks: map[int64]heldTask{}} }

// Add adds a task that is held, waits for its agent, or is in review.
func (h *HeldSet) Add(row task.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks[row.Seq] = heldTask{
		Seq: row.Seq, id: row.ID, Agent: unique.Make(row.Agent),
		InBackoff: InBackoff(row), Budget: row.WaitsForBudget(),
		Paused:  row.State == task.Held && slices.Contains(row.Reasons, task.Paused),
		Limited: row.State == task.Held && slices.Contains(row.Reasons, task.ProviderLimit), suspended: conversation.Suspended(row),
	}
}

// Remove removes a task, and returns its entry if it was held.
func (h *HeldSet) Remove(seq int64) (heldTask, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	delete(h.tasks, seq)
	return task, held
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
