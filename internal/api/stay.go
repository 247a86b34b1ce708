package api

import (
	"cmp"
	"context"
	"net"
	"time"
)

// recheck is how often it is looked whether the socket is still there.
const recheck = 30 * time.Second

// stay puts the socket in its place again when it was taken away, as a runtime
// directory is when its user logs out, until ctx ends.
func (d *Door) stay(ctx context.Context, answer func(net.Listener)) {
	every := cmp.Or(d.opts.Recheck, recheck)
	for told := false; ; {
		next := time.Now().Truncate(every).Add(every) // on the clock, when others wake up too
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
		if d.place.Exists() {
			continue
		}
		listener, err := d.place.Listen(ctx)
		switch {
		case err == nil:
			answer(d.newPorch(listener))
			d.opts.Log.Warn().Stringer("socket", d.place).Msg("control socket was taken away; it is there again")
		case !told && ctx.Err() == nil:
			d.opts.Log.Error().Err(err).Msg("control socket was taken away; trying to put it back")
		}
		told = err != nil
	}
}
