package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

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
