package web

import (
	"context"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/cli/compose"
	"mailboxd/internal/cli/reader"
)

// sendRound has a denied task done once more, if the person asked for it with the denial.
func (d *decisions) sendRound(ctx context.Context, at reader.Location, r *reader.Reader, one *decision) {
	if !one.Again {
		return
	}
	id, err := newRound(ctx, at, r, one.Task)
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.Round = id; err != nil {
		one.Round, one.RoundWhy = "", err.Error()
	}
}

// newRound appends the line of another round of a denied task, as mailboxd deny --again does.
func newRound(ctx context.Context, at reader.Location, r *reader.Reader, denied envelope.ID) (envelope.ID, error) {
	found, err := r.Details(ctx, denied)
	if err != nil {
		return "", err
	}
	id, err := compose.RoundID(ctx, r, found)
	if err != nil {
		return "", err
	}
	line, err := compose.Round(found, id, time.Now())
	if err != nil {
		return "", err
	}
	_, err = at.Submit(ctx, line, false)
	return id, err
}
