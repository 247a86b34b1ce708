package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// deliver has tasks wait for the editor.
func (h *fixture) deliver(t *testing.T, ids ...envelope.ID) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for _, id := range ids {
		h.rememberFor(t, "editor", string(id))
		waits, err := h.Release(ctx, id, client.ControlOptions{})
		for err == nil && waits.State != task.Waiting {
			changed := h.memory.Changed()
			if waits, err = h.Latest(ctx, id); err == nil && waits.State != task.Waiting {
				select {
				case <-changed:
				case <-ctx.Done():
					t.Fatalf("%s is %s; want it waiting", id, waits.State)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestATaskIsClaimedRenewedAndAnswered(t *testing.T) {
	h := open(t, stranger)
	h.deliver(t, "t1")
	got, err := h.Claim(t.Context(), client.Claim{Agent: "editor"})
	if err != nil || got.Task == nil || got.Task.ID != "t1" || got.Lease == "" || !strings.Contains(string(got.Request), `"task_id":"t1"`) {
		t.Fatalf("Claim() = %+v, %v; want t1 with its request and a lease", got, err)
	}
	renewed, err := h.Renew(t.Context(), "t1", client.Renewal{Agent: "editor", Lease: got.Lease})
	if err != nil || renewed.Until.Before(got.Until) {
		t.Errorf("Renew() = %v, %v; want a time from %v", renewed.Until, err, got.Until)
	}
	long := `{"status":"ok","summary":"` + strings.Repeat("long ", 100_000) + `"}`
	waits, err := h.Submit(t.Context(), "t1", client.Submission{Agent: "editor", Lease: got.Lease, Result: jsontext.Value(long)})
	if err != nil || waits.State != task.Done || waits.Status != envelope.OK {
		t.Errorf("Submit() = %s (%s), %v; want it done (ok)", waits.State, waits.Status, err)
	}
	if nothing, err := h.Claim(t.Context(), client.Claim{Agent: "editor"}); err != nil || nothing.Task != nil || nothing.Lease != "" {
		t.Errorf("Claim() of nothing = %+v, %v; want nothing", nothing, err)
	}
}

func TestWhoHasNoLeaseIsToldWhy(t *testing.T) {
	h := open(t, stranger)
	h.deliver(t, "t1", "t2")
	got, err := h.Claim(t.Context(), client.Claim{Agent: "editor"})
	if err != nil {
		t.Fatal(err)
	}
	summary := jsontext.Value(`{"summary":"s"}`)
	for what, c := range map[string]struct {
		id   envelope.ID
		s    client.Submission
		want string
	}{
		"no lease":        {"t1", client.Submission{Agent: "editor", Result: summary}, client.Conflict},
		"another's lease": {"t1", client.Submission{Agent: "editor", Lease: "x", Result: summary}, client.Conflict},
		"another agent":   {"t1", client.Submission{Agent: "a", Lease: got.Lease, Result: summary}, client.Forbidden},
		"no answer":       {"t1", client.Submission{Agent: "editor", Lease: got.Lease, Result: jsontext.Value(`{}`)}, client.BadRequest},
		"a made-up lease": {"t2", client.Submission{Agent: "editor", Lease: "x", Result: summary}, client.Conflict},
		"no such task":    {"t9", client.Submission{Agent: "editor", Result: summary}, client.NoTask},
	} {
		if _, err := h.Submit(t.Context(), c.id, c.s); kindOf(err) != c.want {
			t.Errorf("submit with %s = %v; want %s", what, err, c.want)
		}
	}
	if _, err := h.Claim(t.Context(), client.Claim{Agent: "a"}); kindOf(err) != client.Forbidden {
		t.Errorf("claim for an agent that is run = %v; want %s", err, client.Forbidden)
	}
	if _, err := h.Cancel(t.Context(), "t1", client.ControlOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = h.Submit(t.Context(), "t1", client.Submission{Agent: "editor", Lease: got.Lease, Result: summary})
	if kindOf(err) != client.Conflict || !strings.Contains(err.Error(), "done already (cancelled)") {
		t.Errorf("submit of what is cancelled = %v; want %s that says so", err, client.Conflict)
	}
}

// A lease is for its claimant, so nothing that everybody may read
// shows it.
func TestNobodyReadsTheLeaseOfAnother(t *testing.T) {
	h := open(t, stranger)
	h.deliver(t, "t1")
	got, err := h.Claim(t.Context(), client.Claim{Agent: "editor"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := h.Details(t.Context(), "t1")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range file.Events {
		if strings.Contains(string(e.Data), got.Lease) {
			t.Errorf("the event %s %s shows the lease", e.Kind, e.Data)
		}
	}
	if file.Why == "" || file.Task.Until.IsZero() {
		t.Errorf("details: why %q, until %v; want it to say until when it is claimed", file.Why, file.Task.Until)
	}
}
