package dispatch

import "context"

// A readiness lets callers wait until recovery is over.
type readiness struct {
	ready chan struct{} // closed then
}

// Ready is closed when recovery is over and new tasks are taken.
func (r *readiness) Ready() <-chan struct{} { return r.ready }

// whenReady blocks until recovery is over, or returns the cause of ctx.
func (r *readiness) whenReady(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
