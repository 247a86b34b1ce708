package store

import (
	"slices"
	"sync"

	"mailboxd/internal/running/schedule"
)

// RecentRuns knows the runs that have ended since the last look at the task lines. The requests
// of such a run may be unread, and they are still children of its task.
type RecentRuns struct {
	Performance Performance // how runs ended, for the choice of agents

	mu    sync.Mutex // guards the fields below
	ended int        // how many runs have ended
	runs  map[string][]recentRun
}

// A recentRun is an ended run with its number in the order of ends.
type recentRun struct {
	item schedule.Item
	n    int
}

// maxRecentRuns is how many runs of one agent are kept. Requests of older runs count as
// requests of a later one.
const maxRecentRuns = 100

func newRecentRuns() *RecentRuns { return &RecentRuns{runs: map[string][]recentRun{}} }

// Add adds a run that has ended.
func (b *RecentRuns) Add(it schedule.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended++
	runs := append(b.runs[it.Agent], recentRun{it, b.ended})
	b.runs[it.Agent] = runs[max(0, len(runs)-maxRecentRuns):]
}

// Count returns how many runs have ended. A caller takes it before a look, for Forget.
func (b *RecentRuns) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Forget removes the first runs that ended: a look has read their requests.
func (b *RecentRuns) Forget(first int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for agent, runs := range b.runs {
		runs = slices.DeleteFunc(runs, func(r recentRun) bool { return r.n <= first })
		if b.runs[agent] = runs; len(runs) == 0 {
			delete(b.runs, agent)
		}
	}
}

// of returns the runs of an agent, in the order of their ends.
func (b *RecentRuns) of(agent string) (items []schedule.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.runs[agent] {
		items = append(items, r.item)
	}
	return items
}

// Any reports whether a run has ended whose requests may be unread.
func (b *RecentRuns) Any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.runs) > 0
}
