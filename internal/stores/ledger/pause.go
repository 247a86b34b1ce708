package ledger

import (
	"context"
	"fmt"
	"time"
)

// Pause records that an agent, or every agent when it is "", may start no
// run. It reports whether that is new.
func (tx *Tx) Pause(agent string) (bool, error) {
	news, err := tx.change("INSERT INTO pauses (agent, since) VALUES (?, ?) ON CONFLICT DO NOTHING", agent, time.Now().UnixMicro())
	if err != nil {
		return false, fmt.Errorf("pause agent %q: %w", agent, err)
	}
	return news, nil
}

// Resume removes the pause of exactly this name. It reports whether there was one.
func (tx *Tx) Resume(agent string) (bool, error) {
	news, err := tx.change("DELETE FROM pauses WHERE agent = ?", agent)
	if err != nil {
		return false, fmt.Errorf("resume agent %q: %w", agent, err)
	}
	return news, nil
}

// Paused returns the agents that are paused, with "" for every agent.
func (r *Reader) Paused(ctx context.Context) ([]string, error) {
	agents, err := all(ctx, r.read, one[string], "SELECT agent FROM pauses ORDER BY agent")
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return agents, nil
}
