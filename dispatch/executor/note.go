package executor

import (
	"context"
	"sync"
	"time"

	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// noteAfter is how long a run lasts before its process is noted. One that is
// over by then is noted with its end, which saves it a transaction.
const noteAfter = 100 * time.Millisecond

// A note remembers in the ledger which process a run is. It is for people: the
// run directory has it too, so nothing waits for it and recovery does not ask.
type note struct {
	write func(runner.Process)

	mu      sync.Mutex // guards timer, and lets end wait for a note that is being written
	timer   *time.Timer
	written bool // or not wanted any more
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

// begin has the process noted in a while.
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

// end says that the run is over. No note is being written when it returns.
func (n *note) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = true
	if n.timer != nil {
		n.timer.Stop()
	}
}
