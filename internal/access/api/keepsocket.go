package api

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"mailboxd/internal/access/client"
)

// A socket is where a Server listens.
type socket struct {
	path     client.SocketPath
	listener net.Listener
}

// openSocket listens at the first of the paths that works.
func (d *Server) openSocket(ctx context.Context, paths ...client.SocketPath) (failed error) {
	for _, path := range paths {
		listener, err := path.Listen(ctx)
		if err == nil {
			d.sockets = append(d.sockets, &socket{path, d.newListener(listener, path.Group != 0)})
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// recheck is how often the socket is checked.
const recheck = 30 * time.Second

// keep makes a socket again when its file was removed, until ctx ends. A logout removes the
// runtime directory.
func (d *Server) keep(ctx context.Context, s *socket, answer func(net.Listener)) {
	every := cmp.Or(d.opts.Recheck, recheck)
	for reported := false; ; {
		next := time.Now().Truncate(every).Add(every) // on the clock, when others wake up too
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
		if s.path.Exists() {
			continue
		}
		listener, err := s.path.Listen(ctx)
		switch {
		case err == nil:
			answer(d.newListener(listener, s.path.Group != 0))
			d.opts.Log.Warn().Stringer("socket", s.path).Msg("control socket was taken away; it is there again")
		case !reported && ctx.Err() == nil:
			d.opts.Log.Error().Err(err).Msg("control socket was taken away; trying to put it back")
		}
		reported = err != nil
	}
}
