package dispatch

import (
	"context"
	"errors"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// A CAP agent may ask its requester something in a message that ends with a question
// mark. The message is the answer if nobody replies in conversation.question_timeout.
// That answer is in the ledger from the end of the run on, as the result of a task
// that is not done.

// askedBy is the answer that a task has if nobody replies to what its agent asked in
// its last run; nil for none.
func (d *Dispatcher) askedBy(ctx context.Context, row task.Task) (*envelope.Result, error) {
	if row.ResultSum == "" {
		return nil, nil
	}
	raw, err := d.Ledger.Result(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return conversation.Unanswered(raw, row.Attempt), nil
}
