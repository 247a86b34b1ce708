// Package live streams to a browser what is new. It keeps answers without an end from taking all connections.
package live

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// Streams are the answers that have no end. Each takes a connection of the daemon, which has not
// many, so the newest end the oldest: one that nobody reads keeps nobody from the page. The zero value has none.
type Streams struct {
	mu   sync.Mutex // guards list
	list []*stream
}

// A stream is one of them.
type stream struct{ end context.CancelFunc }

// mostStreams is how many there are at a time: those of more tabs than a person looks at.
const mostStreams = 32

// Limit lets a stream begin, and ends the oldest one of too many.
func (s *Streams) Limit(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		one := &stream{end}
		s.add(one)
		defer s.remove(one)
		serve(w, r.WithContext(ctx))
	}
}

func (s *Streams) add(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list = append(s.list, one); len(s.list) > mostStreams {
		s.list[0].end()
		s.list = s.list[1:]
	}
}

func (s *Streams) remove(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *stream) bool { return other == one })
}
