package dispatch

import (
	"context"
	"slices"
	"sync"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// A hearing is how much of a conversation a run was handed when it began. The
// zero value is nothing.
type hearing struct {
	message int64 // the Seq of the last message
	ended   int   // how many of the tasks that it needs had ended
}

// hearings know what the last run of a task that is not over has heard. One that an
// earlier daemon began has heard nothing, so its agent may be handed something twice.
type hearings struct {
	mu  sync.Mutex // guards all
	all map[int64]hearing
}

func newHearings() *hearings { return &hearings{all: map[int64]hearing{}} }

func (h *hearings) set(seq int64, one hearing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[seq] = one
}

func (h *hearings) of(seq int64) hearing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[seq]
}

func (h *hearings) forget(seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, seq)
}

// conversation is what a run of a task is handed beside the request: what was
// said to and by its agent about the task and those that belong to it, and what
// became of these. The first attempt at an AINL request has none.
func (d *Dispatcher) conversation(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	if row.Attempt == 0 && row.Parent == 0 && row.Dialect == envelope.AINL {
		return nil, nil
	}
	said, err := d.Ledger.Conversation(ctx, row)
	if err != nil {
		return nil, err
	}
	ends, err := d.ends(ctx, row)
	if err != nil {
		return nil, err
	}
	heard := hearing{ended: len(ends)}
	var list []envelope.Message
	for _, m := range said {
		heard.message = max(heard.message, m.Seq)
		if conversation.InHistory(m, row) {
			list = append(list, d.recall(m, row))
		}
	}
	list = append(list, ends...)
	slices.SortStableFunc(list, func(a, b envelope.Message) int { return a.Time.Compare(b.Time) })
	d.heard.set(row.Seq, heard)
	return list, nil
}

// recall makes a message of what is remembered of it. What its line cannot say
// any more is taken from the books.
func (d *Dispatcher) recall(was task.Message, row task.Task) (m envelope.Message) {
	if codec, ok := dialect.Of(was.Dialect); ok {
		m, _ = codec.Decode(was.Body, d.opts.Reading)
	}
	return conversation.Recorded(m, was, row)
}

// ends are what became of the tasks that a task needs, the oldest first.
func (d *Dispatcher) ends(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	children, err := d.Ledger.Offspring(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	var ends []envelope.Message
	for _, c := range children {
		if !conversation.Needed(c) || c.State != task.Done {
			continue
		}
		m, err := d.endOf(ctx, c)
		if err != nil {
			return nil, err
		}
		ends = append(ends, m)
	}
	return ends, nil
}

// endOf is what became of a task, as its agent says it to its requester.
func (d *Dispatcher) endOf(ctx context.Context, c task.Child) (envelope.Message, error) {
	result, err := d.answerOfChild(ctx, c.Task)
	if err != nil {
		return envelope.Message{}, err
	}
	known, _, err := d.Ledger.Talk(ctx, c.Seq)
	return conversation.End(c.Task, known, result), err
}

// answerOfChild is the result of a task that is done. One that a newer request
// has replaced has none.
func (d *Dispatcher) answerOfChild(ctx context.Context, row task.Task) (envelope.Result, error) {
	if row.ResultSum == "" {
		return conversation.ResultOf(row, nil), nil
	}
	raw, err := d.Ledger.Result(ctx, row.Seq)
	return conversation.ResultOf(row, raw), err
}
