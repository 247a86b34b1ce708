package dispatch

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// A CAP agent may ask its requester something in a message that ends with a question
// mark. The message is the answer if nobody replies in conversation.question_timeout.
// That answer is in the ledger from the end of the run on, as the result of a task
// that is not done.

// questionMember is the member of a result that is a question to which nobody
// replied: the attempt in which it was asked.
const questionMember = "mbx.unanswered"

// questionAsked is what becomes the answer of a task if nobody replies to what its
// agent asked; nil for nothing. The task of an overseer has none, for silence approves
// of nothing, and an answer that an overseer looks at is not replaced.
func (t *turn) questionAsked(children []task.Child) []byte {
	_, open := overseeing(children)
	if t.o.Hold != task.Reply || t.o.Unanswered.Status == "" || t.talk.Tie == envelope.Oversee || open {
		return nil
	}
	r := t.o.Unanswered
	members := map[string]jsontext.Value{}
	_ = json.Unmarshal(r.Extra, &members) // there may be none
	members[questionMember], _ = json.Marshal(t.row.Attempt)
	r.Extra = encode(members)
	return r.Encode()
}

// neverItsEnd reports whether the result of a task that a newer request has replaced
// is one that it would have had later.
func neverItsEnd(row task.Task, result []byte) bool {
	if row.State != task.Done || row.Status != envelope.Stopped {
		return false
	}
	r, findings := envelope.DecodeResult(result)
	return !findings.Refused() && r.Status != row.Status
}

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
	r, findings := envelope.DecodeResult(raw)
	if findings.Refused() {
		return nil, nil
	}
	var said struct {
		Attempt int `json:"mbx.unanswered"`
	}
	if json.Unmarshal(r.Extra, &said) != nil || said.Attempt != row.Attempt {
		return nil, nil
	}
	return &r, nil
}
