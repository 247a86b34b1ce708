package ledger

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A SettledRun is a run that has ended, with its agent and how its task ended.
type SettledRun struct {
	Agent string
	Run   task.Run      // Intent, Started, Finished, ExitCode, Signal and Cause
	Kind  envelope.Kind // of the failure of its task; "" for none, and for an earlier attempt
}

const recentRunsQuery = `SELECT t.agent, r.intent, r.started, r.finished, r.exit_code, r.signal, r.cause,
	CASE WHEN r.attempt = t.attempt THEN t.kind ELSE '' END
	FROM runs r JOIN tasks t ON t.seq = r.task WHERE r.finished IS NOT NULL ORDER BY r.task DESC, r.attempt DESC LIMIT ?`

// RecentRuns returns up to n runs of the newest tasks that have ended, the newest first.
func (r *Reader) RecentRuns(ctx context.Context, n int) ([]SettledRun, error) {
	runs, err := all(ctx, r.read, scanSettledRun, recentRunsQuery, n)
	if err != nil {
		return nil, fmt.Errorf("list recent runs: %w", err)
	}
	return runs, nil
}

func scanSettledRun(r row) (s SettledRun, err error) {
	err = r.Scan(&s.Agent, stamp{&s.Run.Intent}, stamp{&s.Run.Started}, stamp{&s.Run.Finished}, &s.Run.ExitCode, &s.Run.Signal, &s.Run.Cause, &s.Kind)
	return s, err
}
