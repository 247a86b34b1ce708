package store

import (
	"context"
	"slices"
	"sync"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// A HistoryMark is the part of a conversation that a run got when it began. The zero value is
// nothing.
type HistoryMark struct {
	Message int64 // the Seq of the last message
	Ended   int   // how many of its required tasks had ended
}

// MarkOf returns the mark of the last run of an open task. The mark of an earlier daemon's run
// is lost, so its agent may get some messages twice.
func (h *History) MarkOf(seq int64) HistoryMark {
	mark, _ := h.marks.Load(seq)
	stored, _ := mark.(HistoryMark)
	return stored
}

// ForgetMark removes the mark of a task that is done.
func (h *History) ForgetMark(seq int64) { h.marks.Delete(seq) }

// Messages returns what a run of a task gets besides the request: the messages to and from its
// agent about the task and its child tasks, and the ends of these. The first attempt at an AINL
// request gets none.
func (h *History) Messages(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	if row.Attempt == 0 && row.Parent == 0 && row.Dialect == envelope.AINL {
		return nil, nil
	}
	messages, err := h.Ledger.ConversationMessages(ctx, row)
	if err != nil {
		return nil, err
	}
	ends, err := h.endsOf(ctx, row)
	if err != nil {
		return nil, err
	}
	mark := HistoryMark{Ended: len(ends)}
	var list []envelope.Message
	for _, m := range messages {
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
func (h *History) recall(recorded task.Message, row task.Task) (m envelope.Message) {
	if codec, ok := dialect.Of(recorded.Dialect); ok {
		m, _ = codec.Decode(recorded.Body, h.Opts.Reading)
	}
	return conversation.Recorded(m, recorded, row)
}

// endsOf returns the ends of the tasks that a task needs, oldest first.
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
		conv, _, err := h.Ledger.Conversation(ctx, c.Seq)
		if err != nil {
			return nil, err
		}
		ends = append(ends, conversation.End(c.Task, conv, result))
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

// RestartConversation records the conversation of a task that runs again.
func (h *History) RestartConversation(tx *Transaction, row task.Task, last int64) error {
	conv, inConversation, err := tx.Conversation(last)
	if err != nil || !inConversation {
		return err
	}
	parent, found, err := tx.Task(row.Parent)
	if err != nil {
		return err
	}
	return tx.StartConversation(conversation.Retried(conv, row.Seq, !found || parent.State == task.Done))
}

// A History returns the messages about a task.
type History struct {
	*Shared
	marks sync.Map // of HistoryMark, by the Seq of an open task
}
