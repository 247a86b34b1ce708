package executor

import (
	"context"
	"sync"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/ledger"
)

// noteAfter is the age at which the process of a run is recorded. The process of a shorter run
// is recorded with its end, which saves a transaction.
const noteAfter = 100 * time.Millisecond

// A note records the process of a run in the ledger. It is for people: the run directory has
// the process too, so no code waits for the note, and recovery does not use it.
type note struct {
	write func(runner.Process)

	mu      sync.Mutex // guards the fields below, and lets end wait for a write in progress
	timer   *time.Timer
	written bool // or no longer needed
}

func (x *Executor) newNote(ctx context.Context, row task.Task) *note {
	return &note{write: func(p runner.Process) {
		err := x.Ledger.UpdateSoon(context.WithoutCancel(ctx), func(tx *ledger.Tx) error {
			return tx.SetProcess(row.Seq, row.Attempt, p.PID, p.Start, p.Boot)
		})
		if err != nil {
			x.Log(row).Warn().Err(err).Msg("process of a run not noted")
		}
	}}
}

// begin starts the timer of the note.
func (n *note) begin(p runner.Process) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.timer = time.AfterFunc(noteAfter, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.written {
			n.written = true
			n.write(p)
		}
	})
}

// end handles the end of the run. No write is in progress when it returns.
func (n *note) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = true
	if n.timer != nil {
		n.timer.Stop()
	}
}
