package live

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// StartOf is the event after which a browser goes on; negative: from now on.
func StartOf(r *http.Request) int64 {
	for _, text := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		var n int64
		if _, err := fmt.Sscan(text, &n); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// A Beat sends the number of the newest event, at most five times a second.
type Beat struct {
	out *Writer

	mu   sync.Mutex // guards last and sent
	last int64
	sent int64
}

// Set says which event is the newest.
func (b *Beat) Set(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = seq
}

// NewBeat sends the events after one.
func NewBeat(out *Writer, after int64) *Beat { return &Beat{out: out, last: after, sent: after} }

// news returns the newest event, if it was not sent.
func (b *Beat) news() (int64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := b.last > 0 && b.last != b.sent
	b.sent = b.last
	return b.last, fresh
}

// beatTime is the time between two messages, and alive between those that say nothing.
const (
	beatTime = 200 * time.Millisecond
	alive    = 15 * time.Second
)

// Serve sends until ctx ends; a browser that is gone ends it.
func (b *Beat) Serve(ctx context.Context, stop func()) {
	ticks, quiet := time.NewTicker(beatTime), time.Now()
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		text := ""
		if seq, fresh := b.news(); fresh {
			text = fmt.Sprintf("id: %d\ndata: %d\n\n", seq, seq)
		} else if time.Since(quiet) > alive {
			text = ": alive\n\n"
		}
		if text != "" {
			quiet = time.Now()
			if b.out.Send(text) != nil {
				stop()
				return
			}
		}
	}
}
