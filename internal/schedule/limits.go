package schedule

import (
	"sync"
	"time"

	"mailboxd/envelope"
)

// A LimitPause says how long an agent starts nothing whose provider has reached a usage limit:
// until the time that the agent names, but at least for Least. When it names no time: for First.
// Both double up to Longest while the limit lasts, so that no task runs again and again.
type LimitPause struct{ Least, First, Longest time.Duration }

// Limits knows the agents whose providers have reached a usage limit. The ledger has the tasks
// that are held for it; a limit itself is only in memory. The zero value is ready.
type Limits struct {
	mu     sync.Mutex // guards agents
	agents map[string]*agentLimit
}

type agentLimit struct {
	until    time.Time
	reached  time.Time            // when it was reached for the last time, as far as this daemon knows
	times    int                  // how often in a row
	released map[envelope.ID]bool // tasks that start nevertheless
}

// Reach records that a run of an agent has reached a limit, and returns when the agent is tried
// again. The agent names the end of the limit; zero: it names none.
func (l *Limits) Reach(agent string, named, now time.Time, pause LimitPause) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.get(agent)
	parallel := now.Before(limit.until) && len(limit.released) == 0 // reached by runs side by side
	if !parallel {
		limit.times++
	}
	limit.reached, limit.released = now, nil
	first := pause.Least
	if named.IsZero() {
		first = pause.First
	}
	until := now.Add(min(first<<min(max(limit.times-1, 0), 20), max(pause.Longest, first)))
	if named.After(until) {
		until = named
	}
	if !parallel || !named.IsZero() && until.After(limit.until) {
		limit.until = until.Truncate(time.Microsecond)
	}
	return limit.until
}

// Restore records, at a start of the daemon, a limit that the ledger knows from a held task.
func (l *Limits) Restore(agent string, until, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit := l.get(agent); until.After(limit.until) {
		limit.until, limit.reached = until, now
	}
}

func (l *Limits) get(agent string) *agentLimit {
	limit := l.agents[agent]
	if limit == nil {
		limit = &agentLimit{}
		if l.agents == nil {
			l.agents = map[string]*agentLimit{}
		}
		l.agents[agent] = limit
	}
	return limit
}

// Holds reports whether a limit keeps a task from starting, and until when.
func (l *Limits) Holds(agent string, id envelope.ID, now time.Time) (until time.Time, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.agents[agent]
	if limit == nil || !now.Before(limit.until) || limit.released[id] {
		return time.Time{}, false
	}
	return limit.until, true
}

// Release lets a task start although a limit holds its agent.
func (l *Limits) Release(agent string, id envelope.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.get(agent)
	if limit.released == nil {
		limit.released = map[envelope.ID]bool{}
	}
	limit.released[id] = true
}

// End forgets the limit of an agent, and reports whether there was one.
func (l *Limits) End(agent string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.agents[agent]
	delete(l.agents, agent)
	return known
}

// Worked forgets the limit of an agent that has answered in a run begun after it was reached. It
// reports whether there was one.
func (l *Limits) Worked(agent string, started time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.agents[agent]
	if limit == nil || !started.After(limit.reached) {
		return false
	}
	delete(l.agents, agent)
	return true
}
