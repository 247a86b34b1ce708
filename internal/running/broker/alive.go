package broker

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// aliveInterval is the time between two signs of an answer that takes long. Claude Code gives a request up
// that has no answer after a minute, and the libraries of others after five.
const aliveInterval = 20 * time.Second

// An answer is the response to one request. While a person decides, or a tool works, it gets spaces, which
// JSON has no meaning for.
type answer struct {
	sent context.Context     // ends when the program gives the request up
	mu   sync.Mutex          // guards w
	w    http.ResponseWriter // nil: the request has ended
}

type answerKey struct{}

// answered lets the handlers of a request keep its answer alive.
func answered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{sent: r.Context(), w: w}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), answerKey{}, a)))
		a.mu.Lock()
		defer a.mu.Unlock()
		a.w = nil
	})
}

// whileAwaited returns a context that also ends when the program gives the request up. That of a handler
// doesn't in each version of the protocol.
func whileAwaited(ctx context.Context) (_ context.Context, stop func()) {
	a, ok := ctx.Value(answerKey{}).(*answer)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	end := context.AfterFunc(a.sent, func() { cancel(errors.New("the program doesn't wait for the answer any more")) })
	return ctx, func() {
		end()
		cancel(nil)
	}
}

// keepAlive sends signs until stop is called. Nothing else may write to the answer before that.
func keepAlive(ctx context.Context) (stop func()) {
	a, ok := ctx.Value(answerKey{}).(*answer)
	if !ok {
		return func() {}
	}
	ended := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		ticker := time.NewTicker(aliveInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				a.space()
			}
		}
	})
	return func() {
		close(ended)
		sending.Wait()
	}
}

// space sends a space. An error means that the program is gone.
func (a *answer) space() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.w == nil {
		return
	}
	_, _ = a.w.Write([]byte(" "))
	_ = http.NewResponseController(a.w).Flush()
}
