package main

import (
	"context"

	"github.com/rs/zerolog"

	"mailboxd/dispatch"
	"mailboxd/internal/api"
	"mailboxd/internal/reader"
)

// openDoor opens the control socket of a house.
func openDoor(ctx context.Context, ephemeral bool, h *house, d *dispatch.Dispatcher, log zerolog.Logger) (*api.Door, error) {
	places, err := reader.SocketPlaces(h.box.Path(), h.state.Path())
	if err != nil {
		return nil, err
	}
	if ephemeral {
		places = places[len(places)-1:] // what is left of it when we are killed goes with the rest
	}
	return api.Open(ctx, d, api.Options{
		Places: places, Version: version(), Kin: h.keepers.Kin, Left: h.keepers.Left, Approvers: h.team.approvers, Log: log,
	})
}
