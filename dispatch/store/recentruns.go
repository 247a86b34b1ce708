package store

import (
	"slices"
	"sync"

	"mailboxd/internal/schedule"
)

// RecentRuns knows which runs have ended since task lines were last looked at: what
// one has asked for may not be read yet, and is a child of its task all the same.
type RecentRuns struct {
	mu    sync.Mutex // guards what follows
	ended int        // how many runs have
	runs  map[string][]recentRun
}

// A recentRun is a run that has ended, and its number among these.
type recentRun struct {
	item schedule.Item
	n    int
}

// maxRecentRuns is how many of one agent are remembered. What older ones have
// asked for is taken for what a later one did.
const maxRecentRuns = 100

func newRecentRuns() *RecentRuns { return &RecentRuns{runs: map[string][]recentRun{}} }

// Add remembers a run that has ended.
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

// Forget lets go of the first runs that ended: a look has read what they said.
func (b *RecentRuns) Forget(first int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for agent, runs := range b.runs {
		runs = slices.DeleteFunc(runs, func(one recentRun) bool { return one.n <= first })
		if b.runs[agent] = runs; len(runs) == 0 {
			delete(b.runs, agent)
		}
	}
}

// of returns the runs of an agent, the one that ended first first.
func (b *RecentRuns) of(agent string) (items []schedule.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.runs[agent] {
		items = append(items, one.item)
	}
	return items
}

// Any reports whether a run has ended whose requests no look may have read yet.
func (b *RecentRuns) Any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.runs) > 0
}
