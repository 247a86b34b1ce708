package store

import (
	"context"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/fault"
)

// A Writer changes tasks: the core decides, the Writer makes the decision durable, and
// OnCommitted takes the next step.
type Writer struct {
	*Shared
	OnCommitted func(context.Context, Consequences)
	Counts      *Counts // nil: nothing is counted
}

// Update runs fn in a transaction, as [ledger.Ledger.Update] does, and takes the next step of
// all tasks that fn moved. It returns when both are done.
func (w *Writer) Update(ctx context.Context, fn func(tx *Transaction) error) error {
	follow, err := w.Commit(ctx, fn)
	if err == nil {
		w.OnCommitted(ctx, follow)
	}
	return err
}

// Commit runs fn in a transaction, and returns the consequences.
func (w *Writer) Commit(ctx context.Context, fn func(tx *Transaction) error) (follow Consequences, err error) {
	err = w.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		t := Transaction{Tx: tx, verify: w.verify}
		err := fn(&t)
		follow = t.follow
		return err
	})
	if err == nil {
		w.Counts.add(&follow)
	}
	if err == nil && len(follow.Moves) > 0 {
		fault.Point("moved")
	}
	return follow, err
}

// A Transaction is one change of the ledger, with its consequences.
type Transaction struct {
	*ledger.Tx
	follow Consequences
	verify func(task.Task, *task.Consent) // verifies the proof of an approval
}

// Consequences are the steps that follow from a transaction, once it is durable. The zero value
// is nothing.
type Consequences struct {
	Moves   []Move
	Parents []int64        // the Seqs of tasks that have a new dependent
	Cancels []Cancellation // of other tasks
	Deliver bool           // a message is due in an inbox
	index   map[int64]int  // of Moves, by the Seq of the task
	ran     []ranRun       // the runs that ended
}

// A Cancellation is a task that a message cancels.
type Cancellation struct {
	Task    int64 // its Seq
	From    string
	Message string // the id of the message
}

// A Move is a task that a transaction added or moved.
type Move struct {
	Before task.Task // before the transaction; zero: the task is new
	After  task.Task
	Ended  bool      // a run of it is over
	Run    *task.Run // that run; nil: it was taken back, or none is over
	Pauses bool      // a later step queues the task
}

// Pause splits the steps when tasks are queued again after a pause: now lets other tasks
// continue, and later queues the tasks.
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

// note records the effect of a change on a task. A change of a task that isn't loaded, such as
// the parent of a new one, moves nothing.
func (f *Consequences) note(c core.Change, before, after task.Task) {
	f.noteRun(c, after.Agent)
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
	if ended, ok := c.(*core.RunEnded); ok {
		m.Run = &ended.Run
	}
}

// After returns a task as the transaction left it, if it was moved.
func (f *Consequences) After(seq int64) (after task.Task, moved bool) {
	at, moved := f.index[seq]
	if !moved {
		return task.Task{}, false
	}
	return f.Moves[at].After, true
}

// moves reports whether a change needs a next step.
func moves(c core.Change) bool {
	_, moved := c.(*core.Moved)
	_, added := c.(*core.Added)
	return moved || added || endsRun(c)
}

// endsRun reports whether a change ends a run, or takes it back.
func endsRun(c core.Change) bool {
	switch c.(type) {
	case *core.RunEnded, *core.RunVoid, *core.RunReleased:
		return true
	}
	return false
}

// Record is [ledger.Tx.Record]. The message is delivered once the transaction is durable. A
// message that no other event describes has an event of its own, so that events and messages
// have one order (CLUTCH-30).
func (tx *Transaction) Record(m task.Message) (int64, error) {
	tx.follow.Deliver = tx.follow.Deliver || m.Inbox != ""
	seq, err := tx.Tx.Record(m)
	if err != nil || !conversation.HasEvent(m) {
		return seq, err
	}
	data := map[string]any{"message": seq, "act": string(m.Act), "from": m.From, "to": m.To}
	return seq, tx.Log(task.Event{Time: m.Time, Of: m.Task, Kind: task.KindMessageReceived, Data: Encode(data)})
}

// CancelAfter cancels a task once the transaction is durable.
func (tx *Transaction) CancelAfter(seq int64, m envelope.Message) {
	tx.follow.Cancels = append(tx.follow.Cancels, Cancellation{Task: seq, From: m.From, Message: m.ID})
}

// StartConversation is [ledger.Tx.StartConversation]. It records whether a new task is a
// dependent of its parent.
func (tx *Transaction) StartConversation(c task.Conversation) error {
	if at, known := tx.follow.index[c.Task]; known && conversation.Dependent(c.Tie) {
		tx.follow.Parents = append(tx.follow.Parents, tx.follow.Moves[at].After.Parent)
	}
	return tx.Tx.StartConversation(c)
}
