package main

import (
	"context"
	"errors"
	"fmt"

	"mailboxd/internal/client"
)

// socket asks on the control socket whether a daemon is there.
func (d *doctor) socket(ctx context.Context) {
	places, err := socketPlaces(d.root, d.state)
	if err != nil {
		d.bad("socket", "ls -ld "+d.root, "%v", err)
		return
	}
	daemon, err := client.Open(ctx, places...)
	var status client.Status
	if err == nil {
		status, err = daemon.Status(ctx)
		daemon.Close()
	}
	switch {
	case err == nil:
		d.good("socket", "process %d answers, mailboxd %s", status.PID, status.Version)
	case errors.Is(err, client.ErrDown) && d.pid == 0:
		d.good("socket", "%s, when a daemon runs", places[0])
	default:
		d.bad("socket", fmt.Sprintf("kill %d; mailboxd serve", d.pid), "%s: %v", places[0], err)
	}
}
