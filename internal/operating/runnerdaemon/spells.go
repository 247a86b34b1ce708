package runnerdaemon

import (
	"context"
	"sync"
	"time"
)

// spells are the times between two returns of hub or owner. What was sent before the end of one has no answer then.
type spells struct {
	mu  sync.Mutex
	now context.Context
	end context.CancelFunc
}

// current returns a context that ends when hub or owner are back.
func (s *spells) current() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.now, s.end = context.WithCancel(context.Background())
	}
	return s.now
}

// over ends the spell of now: hub or owner are back.
func (s *spells) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		s.end()
		s.now = nil
	}
}

// within returns a context that ends after a time, and with the spell of now.
func (s *spells) within(ctx context.Context, most time.Duration) (context.Context, func()) {
	ctx, stop := context.WithTimeout(ctx, most)
	undo := context.AfterFunc(s.current(), stop)
	return ctx, func() { undo(); stop() }
}
