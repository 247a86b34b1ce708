package store

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// Shared is the state that all components of the engine share.
type Shared struct {
	Parts
	Agents      Agents
	Opts        Options
	FaultLog    *FaultLog
	Timers      *schedule.Timers
	Queue       *schedule.Queue
	Runs        *RunSet
	Pauses      *Pauses
	ResultLocks *ResultLocks // one goroutine at a time moves a result file
	RecentRuns  *RecentRuns
	Unused      *UnusedDirs
}

// NewShared makes the shared state, with no agent paused.
func NewShared(parts Parts, agents Agents, opts Options) *Shared {
	queue := schedule.NewQueue(opts.Workers, opts.Queue, opts.PerRequester, agents.Limit)
	if r := agents.Runners; r != nil {
		queue.Places = &schedule.Places{IsRemote: agents.IsRemote, Free: r.Free, Take: r.Take}
	}
	return &Shared{
		Parts:       parts,
		Agents:      agents,
		Opts:        opts,
		FaultLog:    NewFaultLog(opts.Log),
		Timers:      schedule.NewTimers(queue.AddBusy),
		Queue:       queue,
		Runs:        newRunSet(),
		Pauses:      NewPauses(nil),
		ResultLocks: newResultLocks(),
		RecentRuns:  newRecentRuns(),
		Unused:      newUnusedDirs(),
	}
}

// Info is Log(row).Info() without a logger per task, which takes 500 bytes.
func (s *Shared) Info(row task.Task) *zerolog.Event {
	return s.Opts.Log.Info().Str("task_id", string(row.ID)).Str("agent", row.Agent)
}

// Log returns a logger that names the task.
func (s *Shared) Log(row task.Task) *zerolog.Logger { return taskLogger(s.Opts.Log, row) }

// Persist tries until it succeeds or ctx ends.
func (s *Shared) Persist(ctx context.Context, row task.Task, try func() error) error {
	for {
		err := try()
		if err == nil {
			s.FaultLog.Clear(recording)
			return nil
		}
		s.FaultLog.Report(recording, row, err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(RetryPause):
		}
	}
}

// LookAt has a task looked at again when its row does not say that time; zero: at no time.
func (s *Shared) LookAt(row task.Task, at time.Time) {
	if !at.IsZero() && !at.Equal(row.Due) {
		s.Timers.After(row.Seq, time.Until(at))
	}
}

// Relative returns a path in the state directory relative to that directory.
func (s *Shared) Relative(path string) string {
	rel, err := filepath.Rel(s.State.Path(), path)
	if err != nil {
		return path
	}
	return rel
}

// Parts are the mailbox, the state directory, the ledger and the artifacts of a Dispatcher. The Dispatcher
// owns none of them: the caller that opened them closes them, after Serve has returned.
type Parts struct {
	Box       *mailbox.Box
	State     *mailbox.State
	Ledger    *ledger.Ledger
	Artifacts *artifact.Store
}

func taskLogger(log zerolog.Logger, row task.Task) *zerolog.Logger {
	if row.ID != "" {
		log = log.With().Str("task_id", string(row.ID)).Str("agent", row.Agent).Logger()
	}
	return &log
}

// RetryPause is the pause before a retry of an operation that failed for a reason outside the
// task: a full disk, a busy ledger.
const RetryPause = time.Second

// SettlePause is the first pause before a result or callback is tried again.
const SettlePause = 5 * time.Second

// Backoff returns the pause after a number of failures. It starts with first, doubles up to
// LongestPause, and is shortened by a random part, so that tasks that failed together do not
// retry together.
func Backoff(first time.Duration, failed int) time.Duration {
	pause := min(min(first, LongestPause)<<min(max(failed-1, 0), 20), LongestPause)
	return pause - rand.N(pause/4+1)
}

// LongestPause is the maximum of Backoff.
const LongestPause = 5 * time.Minute

// WithField sets one field in the data of an event, and returns the data.
func WithField(data map[string]any, key string, value any) map[string]any {
	data[key] = value
	return data
}

// PageSize is how many rows are read at once, so that the size of the history does not affect
// memory.
const PageSize = 1000
