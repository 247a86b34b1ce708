package dispatch

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

// A writer changes tasks: it has the core decide, makes that durable, and has the next
// step taken.
type writer struct {
	*shared
	onCommitted func(context.Context, consequences)
}

// update runs fn in a transaction, as [ledger.Ledger.Update] does, and takes the next step
// of all tasks that it moved. It returns when both are done.
func (w *writer) update(ctx context.Context, fn func(tx *transaction) error) error {
	follow, err := w.commit(ctx, fn)
	if err == nil {
		w.onCommitted(ctx, follow)
	}
	return err
}

// commit runs fn in a transaction, and returns what has to follow.
func (w *writer) commit(ctx context.Context, fn func(tx *transaction) error) (follow consequences, err error) {
	err = w.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		t := transaction{Tx: tx}
		err := fn(&t)
		follow = t.follow
		return err
	})
	if err == nil && len(follow.moves) > 0 {
		fault.Point("moved")
	}
	return follow, err
}

// A transaction is one change of the ledger, and what has to follow from it.
type transaction struct {
	*ledger.Tx
	follow consequences
}

// consequences are what has to be done because of a transaction, once that is durable.
// The zero value is nothing.
type consequences struct {
	moves   []move
	parents []int64        // the Seqs of tasks that have a new task below them which ends with them
	cancels []cancellation // of other tasks
	deliver bool           // a message is due in an inbox
}

// A cancellation is a task that a message cancels.
type cancellation struct {
	task    int64 // its Seq
	from    string
	message string // the name of the message
}

// A move is a task that a transaction added or moved.
type move struct {
	before task.Task // as it was before the transaction; zero: it is new
	after  task.Task
	ended  bool // a run of it is over
}

// note remembers what a change made of a task. A change of a task that isn't loaded, such as
// the parent of a new one, moves nothing.
func (f *consequences) note(c core.Change, before, after task.Task) {
	at := slices.IndexFunc(f.moves, func(m move) bool { return m.after.Seq == after.Seq })
	if at < 0 {
		if after.Seq == 0 || !moves(c) {
			return
		}
		f.moves = append(f.moves, move{before: before})
		at = len(f.moves) - 1
	}
	m := &f.moves[at]
	m.after = after
	m.ended = m.ended || endsRun(c)
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
func (tx *transaction) Record(m task.Message) (int64, error) {
	tx.follow.deliver = tx.follow.deliver || m.Inbox != ""
	return tx.Tx.Record(m)
}

// cancelAfter has a task cancelled once the transaction is durable.
func (tx *transaction) cancelAfter(seq int64, m envelope.Message) {
	tx.follow.cancels = append(tx.follow.cancels, cancellation{task: seq, from: m.From, message: m.ID})
}

// StartTalk is [ledger.Tx.StartTalk]. A task that was just added may end with the one above.
func (tx *transaction) StartTalk(c task.Conversation) error {
	for _, m := range tx.follow.moves {
		if m.after.Seq == c.Task && conversation.Dependent(c.Tie) {
			tx.follow.parents = append(tx.follow.parents, m.after.Parent)
		}
	}
	return tx.Tx.StartTalk(c)
}
