package store

import (
	"sync"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/metrics"
)

// Counts counts what happened since the start of the daemon, for metrics. Agents that are not
// configured share the name "": requesters choose such names.
type Counts struct {
	known func(agent string) bool

	mu       sync.Mutex // guards the fields below
	accepted map[string]int64
	ended    map[EndedKey]int64
	runs     map[string]metrics.RunCounts
}

// An EndedKey is an agent with a final status.
type EndedKey struct {
	Agent  string
	Status envelope.Status
}

// NewCounts returns empty Counts.
func NewCounts(known func(agent string) bool) *Counts {
	return &Counts{known: known, accepted: map[string]int64{}, ended: map[EndedKey]int64{}, runs: map[string]metrics.RunCounts{}}
}

// add counts the consequences of a transaction.
func (c *Counts) add(f *Consequences) {
	if c == nil || len(f.Moves)+len(f.ran) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range f.Moves {
		m := &f.Moves[i]
		if m.Before.Seq == 0 {
			c.accepted[c.name(m.After.Agent)]++
		}
		if m.After.State == task.Done && m.Before.State != task.Done && !(m.After.Status == envelope.Stopped && m.After.Kind == "") {
			c.ended[EndedKey{c.name(m.After.Agent), m.After.Status.Known()}]++
		}
	}
	for _, r := range f.ran {
		sum := c.runs[c.name(r.agent)]
		if sum.Runs++; !r.run.Started.IsZero() {
			sum.Took += r.run.Finished.Sub(r.run.Started)
		}
		if r.run.Tokens != nil {
			sum.Tokens += min(*r.run.Tokens, task.MaxAmount)
		}
		if r.run.USDCents != nil {
			sum.USDCents += min(*r.run.USDCents, task.MaxAmount)
		}
		c.runs[c.name(r.agent)] = sum
	}
}

func (c *Counts) name(agent string) string {
	if c.known(agent) {
		return agent
	}
	return ""
}

// Read calls read with the counts, which must not be kept.
func (c *Counts) Read(read func(accepted map[string]int64, ended map[EndedKey]int64, runs map[string]metrics.RunCounts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	read(c.accepted, c.ended, c.runs)
}

// A ranRun is a run that ended.
type ranRun struct {
	agent string
	run   *task.Run
}

// noteRun records the end of a run.
func (f *Consequences) noteRun(c core.Change, agent string) {
	if ended, ok := c.(*core.RunEnded); ok {
		f.ran = append(f.ran, ranRun{agent, &ended.Run})
	}
}
