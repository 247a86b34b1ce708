package store

import (
	"context"
	"slices"
	"sync"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// A HistoryMark is how much of a conversation a run got when it began. The zero value is
// nothing.
type HistoryMark struct {
	Message int64 // the Seq of the last message
	Ended   int   // how many of the tasks that it needs had ended
}

// MarkOf returns the mark of the last run of an open task. A run of an earlier daemon has
// none, so its agent may get something twice.
func (h *History) MarkOf(seq int64) HistoryMark {
	mark, _ := h.marks.Load(seq)
	known, _ := mark.(HistoryMark)
	return known
}

// ForgetMark forgets the mark of a task that is over.
func (h *History) ForgetMark(seq int64) { h.marks.Delete(seq) }

// Messages returns what a run of a task gets beside the request: the messages to and
// from its agent about the task and those that belong to it, and the ends of these. The
// first attempt at an AINL request gets none.
func (h *History) Messages(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	if row.Attempt == 0 && row.Parent == 0 && row.Dialect == envelope.AINL {
		return nil, nil
	}
	said, err := h.Ledger.ConversationMessages(ctx, row)
	if err != nil {
		return nil, err
	}
	ends, err := h.endsOf(ctx, row)
	if err != nil {
		return nil, err
	}
	mark := HistoryMark{Ended: len(ends)}
	var list []envelope.Message
	for _, m := range said {
		mark.Message = max(mark.Message, m.Seq)
		if conversation.InHistory(m, row) {
			list = append(list, h.recall(m, row))
		}
	}
	list = append(list, ends...)
	slices.SortStableFunc(list, func(a, b envelope.Message) int { return a.Time.Compare(b.Time) })
	h.marks.Store(row.Seq, mark)
	return list, nil
}

// recall returns a recorded message.
func (h *History) recall(was task.Message, row task.Task) (m envelope.Message) {
	if codec, ok := dialect.Of(was.Dialect); ok {
		m, _ = codec.Decode(was.Body, h.Opts.Reading)
	}
	return conversation.Recorded(m, was, row)
}

// endsOf returns the ends of the tasks that a task needs, the oldest first.
func (h *History) endsOf(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	children, err := h.Ledger.Dependents(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	var ends []envelope.Message
	for _, c := range children {
		if !conversation.Needed(c) || c.State != task.Done {
			continue
		}
		result, err := h.AnswerOfChild(ctx, c.Task)
		if err != nil {
			return nil, err
		}
		known, _, err := h.Ledger.Conversation(ctx, c.Seq)
		if err != nil {
			return nil, err
		}
		ends = append(ends, conversation.End(c.Task, known, result))
	}
	return ends, nil
}

// AnswerOfChild returns the result of a task that is done.
func (h *History) AnswerOfChild(ctx context.Context, row task.Task) (envelope.Result, error) {
	if row.ResultSum == "" {
		return conversation.ResultOf(row, nil), nil
	}
	raw, err := h.Ledger.Result(ctx, row.Seq)
	return conversation.ResultOf(row, raw), err
}

// RestartConversation records the conversation of a task that is run again.
func (h *History) RestartConversation(tx *Transaction, row task.Task, last int64) error {
	conv, inConversation, err := tx.Conversation(last)
	if err != nil || !inConversation {
		return err
	}
	above, found, err := tx.Task(row.Parent)
	if err != nil {
		return err
	}
	return tx.StartConversation(conversation.Retried(conv, row.Seq, !found || above.State == task.Done))
}

// A History returns what was said about a task.
type History struct {
	*Shared
	marks sync.Map // of HistoryMark, by the Seq of an open task
}
