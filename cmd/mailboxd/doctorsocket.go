package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mailboxd/internal/client"
)

// socket asks on the control socket whether a daemon is there.
func (d *doctor) socket(ctx context.Context) {
	places, err := socketPlaces(d.root, d.state)
	if err != nil {
		d.bad("socket", "ls -ld "+shellWord(d.root), "%v", err)
		return
	}
	daemon, err := client.Open(ctx, places...)
	var status client.Status
	if err == nil {
		status, err = daemon.Status(ctx)
		daemon.Close()
	}
	at := likely(places)
	switch {
	case err == nil:
		d.good("socket", "process %d answers, mailboxd %s, at %s", status.PID, status.Version, daemon.Where())
	case errors.Is(err, client.ErrDown) && d.pid == 0:
		d.good("socket", "%s, when a daemon runs", at)
	case isBusy(err):
		d.warn("socket", "ss -xp src "+shellWord(at.String()), "%v", err)
	default:
		mend := "mailboxd serve"
		if d.pid > 0 {
			mend = fmt.Sprintf("kill %d; %s", d.pid, mend)
		}
		d.bad("socket", mend, "%s: %v", at, err)
	}
}

// likely is the first place that a daemon could make its socket in, or else the
// last, which it makes itself.
func likely(places []client.Place) client.Place {
	for _, p := range places {
		if _, err := os.Stat(filepath.Dir(p.Dir)); err == nil {
			return p
		}
	}
	return places[len(places)-1]
}
