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
	Seq     int64
	id      envelope.ID
	Agent   unique.Handle[string] // there are many tasks of one agent
	Resting bool                  // for a pause between attempts only
	Budget  bool                  // until others leave something of a budget
	Paused  bool                  // because its agent is paused, among what else
	words   bool                  // for something that is said
	told    bool                  // an event says that a file is in the place of its result
}

// A heldSet remembers which tasks are held, so that a look can see whether one
// was answered by hand without asking the ledger.
type heldSet struct {
	mu    sync.Mutex // guards tasks
	tasks map[int64]heldTask
}

func newHeldSet() *heldSet { return &heldSet{tasks: map[int64]heldTask{}} }

// Add remembers a task that is held, waits for its agent, or is in review.
func (h *heldSet) Add(row task.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks[row.Seq] = heldTask{
		Seq: row.Seq, id: row.ID, Agent: unique.Make(row.Agent),
		Resting: Resting(row), Budget: row.WaitsForBudget(),
		Paused: row.State == task.Held && slices.Contains(row.Reasons, task.Paused), words: conversation.Suspended(row),
	}
}

// Remove forgets a task and returns what was remembered of it, if it was held.
func (h *heldSet) Remove(seq int64) (heldTask, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	delete(h.tasks, seq)
	return task, held
}

// Tell notes that an event is about to say that a file is in the place of a
// task's result. It reports false when one says so already, or when the task is
// not held.
func (h *heldSet) Tell(seq int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	task, held := h.tasks[seq]
	news := held && !task.told
	if news {
		task.told = true
		h.tasks[seq] = task
	}
	return news
}

// Names returns the ids of the tasks beside their Seqs.
func (h *heldSet) Names() (seqs []int64, ids []envelope.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seqs, ids = make([]int64, 0, len(h.tasks)), make([]envelope.ID, 0, len(h.tasks))
	for seq, task := range h.tasks {
		seqs, ids = append(seqs, seq), append(ids, task.id)
	}
	return seqs, ids
}

// All returns all held tasks, in no order.
func (h *heldSet) All() []heldTask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.tasks))
}

// Resting reports whether a task is held for a pause between attempts only.
func Resting(row task.Task) bool {
	return row.State == task.Held && slices.Equal(row.Reasons, []task.Reason{task.Capacity})
}
