package store

import (
	"context"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/fault"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// A Writer changes tasks: it has the core decide, makes that durable, and has the next
// step taken.
type Writer struct {
	*Shared
	OnCommitted func(context.Context, Consequences)
}

// Update runs fn in a transaction, as [ledger.Ledger.Update] does, and takes the next step
// of all tasks that it moved. It returns when both are done.
func (w *Writer) Update(ctx context.Context, fn func(tx *Transaction) error) error {
	follow, err := w.Commit(ctx, fn)
	if err == nil {
		w.OnCommitted(ctx, follow)
	}
	return err
}

// Commit runs fn in a transaction, and returns what has to follow.
func (w *Writer) Commit(ctx context.Context, fn func(tx *Transaction) error) (follow Consequences, err error) {
	err = w.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		t := Transaction{Tx: tx}
		err := fn(&t)
		follow = t.follow
		return err
	})
	if err == nil && len(follow.Moves) > 0 {
		fault.Point("moved")
	}
	return follow, err
}

// A Transaction is one change of the ledger, and what has to follow from it.
type Transaction struct {
	*ledger.Tx
	follow Consequences
}

// Consequences are what has to be done because of a transaction, once that is durable.
// The zero value is nothing.
type Consequences struct {
	Moves   []Move
	Parents []int64        // the Seqs of tasks that have a new task below them which ends with them
	Cancels []Cancellation // of other tasks
	Deliver bool           // a message is due in an inbox
	index   map[int64]int  // of Moves, by the Seq of the task
}

// A cancellation is a task that a message cancels.
type Cancellation struct {
	Task    int64 // its Seq
	From    string
	Message string // the name of the message
}

// A Move is a task that a transaction added or moved.
type Move struct {
	Before task.Task // as it was before the transaction; zero: it is new
	After  task.Task
	Ended  bool // a run of it is over
	Pauses bool // it is queued later
}

// Pause splits what follows when tasks are queued again after a pause: now is what others
// wait for, and later has the tasks queued.
func (f Consequences) Pause() (now, later Consequences) {
	now = f
	now.Moves = slices.Clone(f.Moves)
	for i, m := range f.Moves {
		now.Moves[i].Pauses = true
		m.Ended = false
		later.Moves = append(later.Moves, m)
	}
	return now, later
}

// note remembers what a change made of a task. A change of a task that isn't loaded, such as
// the parent of a new one, moves nothing.
func (f *Consequences) note(c core.Change, before, after task.Task) {
	at, known := f.index[after.Seq]
	if !known {
		if after.Seq == 0 || !moves(c) {
			return
		}
		if f.index == nil {
			f.index = map[int64]int{}
		}
		at = len(f.Moves)
		f.Moves, f.index[after.Seq] = append(f.Moves, Move{Before: before}), at
	}
	m := &f.Moves[at]
	m.After = after
	m.Ended = m.Ended || endsRun(c)
}

// After returns a task as the transaction left it, if it was moved.
func (f *Consequences) After(seq int64) (after task.Task, moved bool) {
	at, moved := f.index[seq]
	if !moved {
		return task.Task{}, false
	}
	return f.Moves[at].After, true
}

// moves reports whether a change calls for a next step.
func moves(c core.Change) bool {
	_, moved := c.(*core.Moved)
	_, added := c.(*core.Added)
	return moved || added || endsRun(c)
}

// endsRun reports whether a change ends a run, or takes one back.
func endsRun(c core.Change) bool {
	switch c.(type) {
	case *core.RunEnded, *core.RunVoid, *core.RunReleased:
		return true
	}
	return false
}

// Record is [ledger.Tx.Record]. The message is delivered once the transaction is durable.
func (tx *Transaction) Record(m task.Message) (int64, error) {
	tx.follow.Deliver = tx.follow.Deliver || m.Inbox != ""
	return tx.Tx.Record(m)
}

// CancelAfter has a task cancelled once the transaction is durable.
func (tx *Transaction) CancelAfter(seq int64, m envelope.Message) {
	tx.follow.Cancels = append(tx.follow.Cancels, Cancellation{Task: seq, From: m.From, Message: m.ID})
}

// StartConversation is [ledger.Tx.StartConversation]. A task that was just added may end with the one above.
func (tx *Transaction) StartConversation(c task.Conversation) error {
	if at, known := tx.follow.index[c.Task]; known && conversation.Dependent(c.Tie) {
		tx.follow.Parents = append(tx.follow.Parents, tx.follow.Moves[at].After.Parent)
	}
	return tx.Tx.StartConversation(c)
}
