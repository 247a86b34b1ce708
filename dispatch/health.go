package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
)

// A Health says whether an agent can take a task now (CLUTCH-78).
type Health struct {
	Status    string    // online, busy, degraded or offline
	Why       string    // why it is not online
	Running   int       // runs, and tasks that may start
	Announced time.Time // its latest announcement; zero: none since the start of the daemon
}

// Health returns the health of all agents. That of an agent which the daemon runs is derived from
// its configuration and its runs.
func (d *Dispatcher) Health(ctx context.Context) (map[string]Health, error) {
	if err := d.whenReady(ctx); err != nil {
		return nil, err
	}
	all := map[string]Health{}
	if d.Agents.Candidates == nil {
		return all, nil
	}
	now := time.Now()
	candidates, err := store.Chooser{Reader: d.Reader}.Present(ctx, d.steps.router.load)
	if err != nil {
		return nil, fmt.Errorf("read health of agents: %w", err)
	}
	for _, c := range candidates {
		c.Paused = d.Pauses.Has(c.ID)
		if _, limited := d.Pauses.Limits.Holds(c.ID, "", now); limited {
			c.Waits = task.ProviderLimit.Facts().Clause()
		}
		h := healthOf(&c, now)
		h.Announced = d.Pauses.Presence.Since(c.ID)
		all[c.ID] = h
	}
	return all, nil
}

func healthOf(c *route.Candidate, now time.Time) Health {
	h := Health{Status: "online", Running: c.Running}
	switch {
	case c.Disabled != "":
		h.Status, h.Why = "offline", c.Disabled
	case c.Paused, c.Login, c.Silent(now), c.Waits != "":
		h.Status, h.Why = "offline", offlineWhy(c)
	case c.Slots > 0 && c.Running >= c.Slots:
		h.Status, h.Why = "busy", fmt.Sprintf("all %d slots are taken", c.Slots)
	case c.Degraded(now):
		h.Status, h.Why = "degraded", fmt.Sprintf("its last %d runs failed", c.Faults)
	}
	return h
}

func offlineWhy(c *route.Candidate) string {
	switch {
	case c.Paused:
		return "is paused"
	case c.Login:
		return "needs a login"
	}
	return cmp.Or(c.Waits, "sends no heartbeats any more")
}
