package dispatch

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/ledger"
	"mailboxd/internal/schedule"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// What all components of the engine share.
type shared struct {
	Parts
	agents  Agents
	opts    Options
	faults  *faults
	timers  *schedule.Timers
	queue   *schedule.Queue
	runs    *runSet
	held    *heldSet
	pauses  *pauses
	names   *names // one result file is moved by one goroutine at a time
	bygones *bygones
	unused  *unusedDirs
}

// newShared makes what the components share, for an engine in which no agent is paused.
func newShared(parts Parts, agents Agents, opts Options) *shared {
	return &shared{
		Parts:   parts,
		agents:  agents,
		opts:    opts,
		faults:  newFaults(opts.Log),
		timers:  schedule.NewTimers(),
		queue:   schedule.NewQueue(opts.Workers, opts.Queue, opts.PerRequester, agents.Limit),
		runs:    newRunSet(),
		held:    newHeldSet(),
		pauses:  newPauses(nil),
		names:   newNames(),
		bygones: newBygones(),
		unused:  newUnusedDirs(),
	}
}

// info is log(row).Info() for what each task has: without a logger of its own,
// which is 500 bytes.
func (s *shared) info(row task.Task) *zerolog.Event {
	return s.opts.Log.Info().Str("task_id", string(row.ID)).Str("agent", row.Agent)
}

// log returns a logger that names the task.
func (s *shared) log(row task.Task) *zerolog.Logger { return taskLogger(s.opts.Log, row) }

// persist tries until it can, or until work is cut short.
func (s *shared) persist(ctx context.Context, row task.Task, try func() error) error {
	for {
		err := try()
		if err == nil {
			s.faults.clear(recording)
			return nil
		}
		s.faults.report(recording, row, err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// relative is a path in the state directory as it is told: below that.
func (s *shared) relative(path string) string {
	rel, err := filepath.Rel(s.State.Path(), path)
	if err != nil {
		return path
	}
	return rel
}

// Parts are the places a Dispatcher works on. It owns none of them: whoever
// opened them closes them, after Serve has returned.
type Parts struct {
	Box    *mailbox.Box
	State  *mailbox.State
	Ledger *ledger.Ledger
}

func taskLogger(log zerolog.Logger, row task.Task) *zerolog.Logger {
	if row.ID != "" {
		log = log.With().Str("task_id", string(row.ID)).Str("agent", row.Agent).Logger()
	}
	return &log
}

// retryPause is how long we wait before trying again what failed through no
// fault of the task: a full disk, a busy ledger.
const retryPause = time.Second

// settlePause is how long an undeliverable result or callback rests at first.
const settlePause = 5 * time.Second

// backoff is the pause after so many failures: first, doubling, and a random
// part shorter, so that what failed together is not tried again together.
func backoff(first time.Duration, failed int) time.Duration {
	pause := min(min(first, longestPause)<<min(max(failed-1, 0), 20), longestPause)
	return pause - rand.N(pause/4+1)
}

// longestPause is the most that backoff grows to.
const longestPause = 5 * time.Minute

// past reports whether a deadline is over; zero is none.
func past(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

func with(data map[string]any, key string, value any) map[string]any {
	data[key] = value
	return data
}

// page is how many rows are read at once, so that a long history costs time
// but no memory.
const page = 1000
