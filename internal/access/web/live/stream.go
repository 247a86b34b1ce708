package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// A Stream has all that a browser gets while it is open, over one connection: the number of the newest event, and what runs
// write. It sends at most five times a second.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	changed chan struct{} // has room for one

	mu      sync.Mutex // guards the fields below
	last    int64      // the newest event
	sent    int64
	words   []string // names of events about the stream itself
	outputs []*Output
}

// Slowest is how long one write to a browser may take.
const Slowest = 10 * time.Second

// Times between messages.
const (
	gatherTime = 50 * time.Millisecond  // from a change to its message, which has others, too
	restTime   = 150 * time.Millisecond // from a message to the next change
	aliveTime  = 15 * time.Second       // between messages that say nothing
)

// Begin begins a stream of the events after one.
func Begin(w http.ResponseWriter, after int64) *Stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return &Stream{w: w, control: http.NewResponseController(w), changed: make(chan struct{}, 1), last: after, sent: after}
}

// Set says which event is the newest.
func (s *Stream) Set(seq int64) {
	s.mu.Lock()
	s.last = seq
	s.mu.Unlock()
	s.change()
}

// Last is the newest event; negative: none is known.
func (s *Stream) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Say sends an event about the stream itself: up, down or anew.
func (s *Stream) Say(name string) {
	s.mu.Lock()
	s.words = append(s.words, name)
	s.mu.Unlock()
	s.change()
}

// change has Serve send what is new.
func (s *Stream) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Serve sends until ctx ends, and then what is left. A browser that is gone, or reads nothing, ends it with an error.
func (s *Stream) Serve(ctx context.Context) error {
	if err := s.send("retry: 1000\n\n"); err != nil {
		return err
	}
	alive := time.NewTicker(aliveTime)
	defer alive.Stop()
	for {
		text := ": alive\n\n"
		select {
		case <-ctx.Done():
			return s.send(s.news())
		case <-alive.C:
		case <-s.changed:
			wait(ctx, gatherTime)
			text = s.news()
		}
		if err := s.send(text); err != nil {
			return err
		}
		wait(ctx, restTime)
	}
}

// wait waits for a time, or for the end of ctx.
func wait(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// news returns what is new, as server-sent events, once.
func (s *Stream) news() (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.words {
		text += fmt.Sprintf("event: %s\ndata: 0\n\n", name)
	}
	s.words = nil
	if s.last > 0 && s.last != s.sent {
		text += fmt.Sprintf("id: %d\ndata: %d\n\n", s.last, s.last)
		s.sent = s.last
	}
	for _, o := range s.outputs {
		if part, fresh := o.take(); fresh {
			encoded, err := json.Marshal(part)
			if err != nil {
				panic("encode output: " + err.Error()) // valid text
			}
			text += fmt.Sprintf("event: output\ndata: %s\n\n", encoded)
		}
	}
	return text
}

func (s *Stream) send(text string) error {
	if text == "" {
		return nil
	}
	err := s.control.SetWriteDeadline(time.Now().Add(Slowest))
	if err == nil {
		_, err = io.WriteString(s.w, text)
	}
	return errors.Join(err, s.control.Flush())
}

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
