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

// A heldTask is what is remembered of a task that is held. There may be as many as
// there are tasks: a row of the ledger is five times as large.
type heldTask struct {
	Seq            int64
	id             envelope.ID
	Agent          unique.Handle[string] // there are many tasks of one agent
	InBackoff      bool                  // for a pause between attempts only
	Budget         bool                  // until others leave something of a budget
	Paused         bool                  // because its agent is paused, among what else
	suspended      bool                  // for something that is said
	conflictLogged bool                  // an event says that a file is in the place of its result
}

// A HeldSet remembers which tasks are held, so that a look can see whether one
// was answered by hand without asking the ledger.
type HeldSet struct {
	mu    sync.Mutex // guards tasks
	tasks map[int64]heldTask
}

func newHeldSet() *HeldSet { return &HeldSet{tasks: map[int64]heldTask{}} }

// Add remembers a task that is held, waits for its agent, or is in review.
func (h *HeldSet) Add(row task.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks[row.Seq] = heldTask{
		Seq: row.Seq, id: row.ID, Agent: unique.Make(row.Agent),
		InBackoff: InBackoff(row), Budget: row.WaitsForBudget(),
		Paused: row.State == task.Held && slices.Contains(row.Reasons, task.Paused), suspended: conversation.Suspended(row),
	}
}

// Remove forgets a task and returns what was remembered of it, if it was held.
func (h *HeldSet) Remove(seq int64) (heldTask, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	delete(h.tasks, seq)
	return task, held
}

// MarkConflictLogged notes that an event is about to say that a file is in the place of a
// task's result. It reports false when one says so already, or when the task is
// not held.
func (h *HeldSet) MarkConflictLogged(seq int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	news := held && !task.conflictLogged
	if news {
		task.conflictLogged = true
		h.tasks[seq] = task
	}
	return news
}

// ResultLocks returns the ids of the tasks beside their Seqs.
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

// InBackoff reports whether a task is held for a pause between attempts only.
func InBackoff(row task.Task) bool {
	return row.State == task.Held && slices.Equal(row.Reasons, []task.Reason{task.Capacity})
}
