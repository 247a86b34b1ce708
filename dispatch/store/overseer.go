package store

import (
	"context"
	"errors"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// OverseerOf returns the approver of the answer of a task: that of its agent, or else the one
// that its workflow step names, which may be the agent itself: nobody approves that answer then.
// No request can replace the overseer of an agent.
func (p Protocol) OverseerOf(agent string, t envelope.Task) string {
	if overseer := p.Overseer(agent); overseer != "" {
		return overseer
	}
	return p.StepReview(t)
}

// OverseerOf returns the approver of the answer of a recorded task; "" for none. It reads the
// request only if a step has an approver.
func (rd *Reader) OverseerOf(ctx context.Context, row task.Task) (string, error) {
	p := rd.Agents.Protocol
	if overseer := p.Overseer(row.Agent); overseer != "" || !p.HasReviews() {
		return overseer, nil
	}
	raw, err := rd.Ledger.Raw(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return "", nil // a finished task that is too old to be kept
	}
	if err != nil {
		return "", err
	}
	t, _ := rd.RequestOf(row, raw)
	return p.OverseerOf(row.Agent, t), nil
}
