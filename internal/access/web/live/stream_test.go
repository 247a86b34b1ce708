package live_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/access/web/live"
)

// A connection records what is written, as if its writes could have deadlines.
type connection struct{ *httptest.ResponseRecorder }

func (connection) SetWriteDeadline(time.Time) error { return nil }

// sent is all that a stream sends before it ends.
func sent(t *testing.T, fill func(*live.Stream)) string {
	t.Helper()
	w := connection{httptest.NewRecorder()}
	stream := live.Begin(w, 4)
	fill(stream)
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := stream.Serve(ended); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}

func TestEventsAndOutputsGoOverOneStream(t *testing.T) {
	got := sent(t, func(s *live.Stream) {
		first, second := s.Output("t1"), s.Output("t2")
		_, _ = first.Write([]byte("one\n"))
		_, _ = first.Write([]byte("two\n"))
		second.End()
		s.Say("up")
		s.Set(5)
		s.Set(6)
	})
	for _, want := range []string{
		"event: up\n", "id: 6\ndata: 6\n\n", `data: {"id":"t1","anew":true,"text":"one\ntwo\n"}`, `data: {"id":"t2","anew":true,"end":true}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the stream has %q; want %q in it", got, want)
		}
	}
	if strings.Contains(got, "data: 5") {
		t.Errorf("the stream has %q; want the newest event alone", got)
	}
}

func TestAStreamThatHasNothingNewSaysNothing(t *testing.T) {
	if got := sent(t, func(s *live.Stream) { s.Output("t1") }); got != "retry: 1000\n\n" {
		t.Errorf("the stream has %q; want nothing about events or outputs", got)
	}
}

func TestOfALongOutputTheEndIsSent(t *testing.T) {
	got := sent(t, func(s *live.Stream) {
		out := s.Output("t1")
		for range 1 << 10 {
			_, _ = out.Write([]byte(strings.Repeat("ü", 100)))
		}
		_, _ = out.Write([]byte("the end"))
	})
	if len(got) > 70<<10 || !strings.Contains(got, "the end") || strings.Contains(got, "\uFFFD") {
		t.Errorf("%d bytes are sent, which end with %.100q; want at most 64 KiB, up to the end", len(got), got[max(0, len(got)-100):])
	}
}
