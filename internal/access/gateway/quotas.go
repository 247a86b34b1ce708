package gateway

import (
	"sync"

	"golang.org/x/time/rate"
)

// quotas limit what one sender may ask for, so that others are served too.
type quotas struct {
	rate int // requests in a second

	mu  sync.Mutex // guards all
	all map[string]*quota
}

// A quota is what a sender may still ask for.
type quota struct {
	limiter *rate.Limiter
	open    int
}

const (
	burst   = 10 // seconds of requests that may come at once
	maxOpen = 64 // requests of a sender at a time; a stream is one
)

// take counts a request of a sender, or returns why it is refused. The caller releases it.
func (q *quotas) take(sender string) *refusal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[string]*quota{}
	}
	one := q.all[sender]
	if one == nil {
		one = &quota{limiter: rate.NewLimiter(rate.Limit(q.rate), burst*q.rate)}
		q.all[sender] = one
	}
	if !one.limiter.Allow() || one.open >= maxOpen {
		return &tooMany
	}
	one.open++
	return nil
}

// release ends a request.
func (q *quotas) release(sender string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all[sender].open--
}
