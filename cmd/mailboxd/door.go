package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"mailboxd/dispatch"
	"mailboxd/internal/api"
	"mailboxd/internal/client"
	"mailboxd/mailbox"
)

// openDoor opens the control socket of a house.
func openDoor(ctx context.Context, h *house, d *dispatch.Dispatcher, log zerolog.Logger) (*api.Door, error) {
	places, err := socketPlaces(h.box.Path(), h.state.Path())
	if err != nil {
		return nil, err
	}
	return api.Open(ctx, d, api.Options{
		Places: places, Version: version(), Kin: h.keepers.Kin, Left: h.keepers.Left, Approvers: approvers, Log: log,
	})
}

// socketPlaces are where the control socket of a root may be.
func socketPlaces(root, stateDir string) ([]client.Place, error) {
	slug, err := mailbox.Slug(root)
	if err != nil {
		return nil, err
	}
	return client.Places(stateDir, slug), nil
}

// approvers are the names under which a user may approve.
func approvers(uid int) []string {
	if uid != os.Geteuid() {
		return nil
	}
	return []string{loginName()}
}
