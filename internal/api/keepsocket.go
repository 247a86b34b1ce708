package api

import (
	"cmp"
	"context"
	"net"
	"time"
)

// recheck is how often the socket is checked.
const recheck = 30 * time.Second

// keepSocket makes the socket again when its file was removed, as a runtime directory is
// at a logout, until ctx ends.
func (d *Server) keepSocket(ctx context.Context, answer func(net.Listener)) {
	every := cmp.Or(d.opts.Recheck, recheck)
	for reported := false; ; {
		next := time.Now().Truncate(every).Add(every) // on the clock, when others wake up too
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
		if d.socketPath.Exists() {
			continue
		}
		listener, err := d.socketPath.Listen(ctx)
		switch {
		case err == nil:
			answer(d.newListener(listener))
			d.opts.Log.Warn().Stringer("socket", d.socketPath).Msg("control socket was taken away; it is there again")
		case !reported && ctx.Err() == nil:
			d.opts.Log.Error().Err(err).Msg("control socket was taken away; trying to put it back")
		}
		reported = err != nil
	}
}
