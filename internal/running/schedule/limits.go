package schedule

import (
	"sync"
	"time"

	"mailboxd/envelope"
)

// A LimitPause says how long an agent starts nothing whose provider did not serve it: until the
// time that the provider names. When it names none: for Short if it is overloaded or limits
// requests by the minute, and for First if a quota is used up. All of them double while the
// limit lasts, Short up to First, and First up to Longest, so that no task runs again and again.
type LimitPause struct{ Short, First, Longest time.Duration }

// A Reached limit is what a run says about the limit that it reached.
type Reached struct {
	Named time.Time // when the provider serves again, as it says; zero: it names no time
	Short bool      // it is overloaded, or limits requests by the minute
}

// wait returns how long a limit lasts that is reached for the nth time in a row, the first is 1. A
// provider that names a time is asked again then, but when that was too early, not at once.
func (p LimitPause) wait(r Reached, n int, now time.Time) time.Duration {
	first, longest := p.First, p.Longest
	if r.Short || !r.Named.IsZero() {
		first, longest = p.Short, p.First
	}
	if n == 1 && r.Named.After(now) {
		return r.Named.Sub(now)
	}
	return max(r.Named.Sub(now), min(first<<min(n-1, 20), max(longest, first)))
}

// Limits knows the agents whose providers have reached a limit. The ledger has the tasks
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
// again.
func (l *Limits) Reach(agent string, r Reached, now time.Time, pause LimitPause) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.get(agent)
	parallel := now.Before(limit.until) && len(limit.released) == 0 // reached by runs side by side
	if !parallel {
		limit.times++
	}
	limit.reached, limit.released = now, nil
	until := now.Add(pause.wait(r, max(limit.times, 1), now))
	if !parallel || !r.Named.IsZero() && until.After(limit.until) {
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
