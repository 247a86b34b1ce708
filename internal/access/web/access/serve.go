package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// NewServer returns a server with the limits of the page and the gateway. The contexts of its requests end with ctx. Read
// is how long a request may take to arrive, and conn gives a connection its context.
func NewServer(ctx context.Context, h http.Handler, conn func(context.Context, net.Conn) context.Context, read time.Duration) *http.Server {
	return &http.Server{
		Handler:           h,
		ConnContext:       conn,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       read,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
}

// Serve answers the requests of a listener until ctx ends. Requests may take patience longer, then their
// connections are closed. It returns nil then.
func Serve(ctx context.Context, server *http.Server, l net.Listener, patience time.Duration) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
		return nil
	})
	work.Go(func() error {
		<-ctx.Done()
		wait, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if server.Shutdown(wait) != nil {
			_ = server.Close()
		}
		return nil
	})
	return work.Wait()
}
