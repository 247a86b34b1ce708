package external

import (
	"context"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/remote"
)

// ReadCard reads the card of an agent of A2A, and sends it no task.
func ReadCard(ctx context.Context, s task.Service, bearer string) (remote.Card, error) {
	h := &host{Options: Options{Service: s, Bearer: bearer}}
	if err := h.address(); err != nil {
		return remote.Card{}, err
	}
	return readCard(ctx, h)
}

func readCard(ctx context.Context, h *host) (remote.Card, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return remote.ReadCard(ctx, h.messenger(), h.to)
}
