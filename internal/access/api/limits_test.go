package api_test

import (
	"bufio"
	"net/http"
	"sync/atomic"
	"testing"

	"mailboxd/internal/access/client"
)

func TestAgentsCannotKeepPeopleOut(t *testing.T) {
	var agents atomic.Bool
	h := open(t, func(int) (string, error) {
		if agents.Load() {
			return "an agent", nil
		}
		return "", nil
	})
	agents.Store(true)
	if n := h.crowd(t); n == 0 {
		t.Error("no agent is let in; want some")
	}
	agents.Store(false)
	person, err := client.Open(t.Context(), h.location)
	if err != nil {
		t.Fatalf("Open = %v; want a place for a person", err)
	}
	person.Close()
	h.crowd(t)
	if _, err := client.Open(t.Context(), h.location); kindOf(err) != client.Busy {
		t.Errorf("Open of one too many = %v; want %s", err, client.Busy)
	}
}

// crowd has callers come who stay, until one is sent away, and returns how many
// were let in.
func (h *fixture) crowd(t *testing.T) (n int) {
	t.Helper()
	for ; n < 1000; n++ {
		conn, err := h.location.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = conn.Write([]byte("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")) // it may be refused by now
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusServiceUnavailable {
			return n
		}
	}
	t.Fatal("nobody is sent away")
	return n
}
