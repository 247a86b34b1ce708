package api_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/strict"
)

// A streamed is an event of the stream of Clutch.
type streamed struct{ id, word, data string }

// clutchEvents follows the stream of Clutch. It fails the test if next is called and the daemon
// is gone.
func (h *fixture) clutchEvents(t *testing.T, query string) (next func() streamed) {
	t.Helper()
	socket := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(h.location.Dir, h.location.Name))
	}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://mailboxd"+client.Base+"/clutch/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := socket.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("Content-Type = %s; want a stream", kind)
	}
	lines := bufio.NewScanner(answer.Body)
	return func() (e streamed) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.word = value
			case "data":
				e.data = value
			case "":
				return e
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return e
	}
}

// CLUTCH-77: one stream, followed by run, thread, task, sender or type.
func TestEventsAreFollowedAsMessagesOfClutch(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1", "t2")
	for query, want := range map[string][]string{
		"after=0":                               {" task.request t1", "1 task.accept t1", " task.request t2", "2 task.accept t2"},
		"after=1":                               {" task.request t2", "2 task.accept t2"},
		"after=0&run_id=t2":                     {" task.request t2", "2 task.accept t2"},
		"after=0&task_id=t1":                    {" task.request t1", "1 task.accept t1"},
		"after=0&thread_id=t2&type=task.accept": {"2 task.accept t2"},
		"after=0&from=a":                        {"1 task.accept t1", "2 task.accept t2"},
		"after=0&from=agent:r":                  {" task.request t1", " task.request t2"},
	} {
		next := h.clutchEvents(t, query)
		for i, line := range want {
			e := next()
			var names struct {
				Task string `json:"task_id"`
			}
			if err := json.Unmarshal([]byte(e.data), &names); err != nil {
				t.Fatalf("%s: data %s: %v", query, e.data, err)
			}
			if got := e.id + " " + e.word + " " + names.Task; got != line {
				t.Errorf("%s: message %d is %q; want %q", query, i, got, line)
			}
			if err := strict.Clutch([]byte(e.data)); err != nil {
				t.Errorf("%s: %v: %s", query, err, e.data)
			}
		}
	}
}

func TestMessagesOfClutchComeWhenTheirEventsAreCommitted(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	next := h.clutchEvents(t, "type=task.progress")
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	log := func(kind task.Kind, data string) {
		err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
			return tx.Log(task.Event{Time: at, Kind: kind, Task: "t1", Revision: 1, Data: []byte(data)})
		})
		if err != nil {
			t.Error(err)
		}
	}
	log(task.KindTaskNoticed, `{}`)
	log(task.KindTaskProgress, `{"pct":40,"note":"reading"}`)
	e := next()
	if e.id != "3" || e.word != "task.progress" || !strings.Contains(e.data, `"payload":{"message":"reading","progress":40,"status":"running"}`) ||
		!strings.Contains(e.data, `"ts":"2026-11-23T12:00:00.000Z"`) || !strings.Contains(e.data, `"meta":{"seq":3}`) {
		t.Errorf("the message is %+v; want the progress, and no earlier event", e)
	}
}

// CLUTCH-72: the store is immutable, so a replay is the same each time.
func TestAReplayIsOfARunOrOneOfItsTasks(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	for range 2 {
		r, err := h.Replay(t.Context(), "t1")
		if err != nil || r.Run != "t1" || len(r.Messages) != 2 || len(r.Differences) > 0 || r.Messages[1].Seq != 1 {
			t.Errorf("Replay(t1) = %+v, %v; want its request and its acceptance", r, err)
		}
	}
	if _, err := h.Replay(t.Context(), "nowhere"); kindOf(err) != client.NoTask {
		t.Errorf("Replay(nowhere) = %v; want %s", err, client.NoTask)
	}
}

func TestAStreamDoesNotKeepAllFinishedTasks(t *testing.T) {
	if n := api.KeptSubjects(1000); n == 0 || n > 64 {
		t.Errorf("a stream keeps %d of 1000 finished tasks; want at most 64", n)
	}
}
