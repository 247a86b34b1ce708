package schedule

import (
	"slices"
	"sync"

	"mailboxd/envelope"
)

// After knows which tasks wait for the end of which other task. A restart fills it again.
type After struct {
	mu    sync.Mutex                               // guards the fields below
	waits map[envelope.ID]envelope.ID              // what each waits for
	tasks map[envelope.ID]map[envelope.ID]struct{} // the tasks that wait for each
}

// NewAfter returns an empty set.
func NewAfter() *After {
	return &After{waits: map[envelope.ID]envelope.ID{}, tasks: map[envelope.ID]map[envelope.ID]struct{}{}}
}

// Add records that a task waits for another one. It returns false, and records nothing, if that
// one waits for the task, perhaps through others.
func (a *After) Add(id, other envelope.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, more := other, true; more; at, more = a.waits[at], a.waits[at] != "" {
		if at == id {
			return false
		}
	}
	a.remove(id)
	a.waits[id] = other
	if a.tasks[other] == nil {
		a.tasks[other] = map[envelope.ID]struct{}{}
	}
	a.tasks[other][id] = struct{}{}
	return true
}

// remove forgets what a task waits for. The caller holds mu.
func (a *After) remove(id envelope.ID) {
	other, waits := a.waits[id]
	if !waits {
		return
	}
	delete(a.waits, id)
	if delete(a.tasks[other], id); len(a.tasks[other]) == 0 {
		delete(a.tasks, other)
	}
}

// Chain returns a task that waits, the one that it waits for, and so on.
func (a *After) Chain(id envelope.ID) (tasks []envelope.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; a.waits[id] != ""; id = a.waits[id] {
		tasks = append(tasks, id)
	}
	return tasks
}

// Has reports whether a task is known to wait.
func (a *After) Has(id envelope.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, waits := a.waits[id]
	return waits
}

// Take removes and returns the tasks that wait for a task that has ended.
func (a *After) Take(ended envelope.ID) (tasks []envelope.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.tasks[ended] {
		tasks = append(tasks, id)
	}
	for _, id := range tasks {
		a.remove(id)
	}
	slices.Sort(tasks)
	return tasks
}

// Remove forgets what a task waits for.
func (a *After) Remove(id envelope.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(id)
}
