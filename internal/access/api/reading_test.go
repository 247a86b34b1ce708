package api_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// startAll runs functions, each in a goroutine that the returned group waits for.
func startAll(functions ...func()) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	return &group
}

func TestALongListComesWhole(t *testing.T) {
	h := open(t, stranger)
	var ids []string
	for n := range 2500 {
		ids = append(ids, fmt.Sprintf("t%04d", n))
	}
	h.remember(t, ids...)
	for _, c := range []struct {
		filter client.Filter
		want   []string
	}{
		{client.Filter{}, ids},
		{client.Filter{Limit: 1200}, ids[:1200]},
		{client.Filter{Limit: 3, NewestFirst: true}, []string{"t2499", "t2498", "t2497"}},
		{client.Filter{States: []task.State{"held", "running"}, Agent: "a", Requester: "r", Limit: 1}, ids[:1]},
		{client.Filter{States: []task.State{"queued"}}, nil},
		{client.Filter{Agent: "b"}, nil},
		{client.Filter{Kind: "timeout"}, nil},
		{client.Filter{Type: "other"}, nil},
		{client.Filter{Statuses: []envelope.Status{envelope.OK}}, nil},
		{client.Filter{Since: time.Now().Add(time.Hour)}, nil},
		{client.Filter{All: true, After: 2499}, ids[2499:]},
	} {
		tasks, err := h.Tasks(t.Context(), c.filter)
		var got []string
		for _, task := range tasks {
			got = append(got, string(task.ID))
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Tasks(%+v) = %d tasks, %v; want %d", c.filter, len(got), err, len(c.want))
		}
	}
}

func TestTasksAreCountedHoweverFewAreAskedFor(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1", "t2", "t3")
	for _, c := range []struct {
		filter client.Filter
		want   int
	}{
		{client.Filter{}, 3},
		{client.Filter{Limit: 1, After: 2, NewestFirst: true}, 3},
		{client.Filter{States: []task.State{"held", "running"}, Agent: "a", Requester: "r"}, 3},
		{client.Filter{States: []task.State{"queued"}}, 0},
		{client.Filter{Agent: "b"}, 0},
		{client.Filter{Since: time.Now().Add(time.Hour)}, 0},
	} {
		if got, err := h.Count(t.Context(), c.filter); err != nil || got != c.want {
			t.Errorf("Count(%+v) = %d, %v; want %d", c.filter, got, err, c.want)
		}
	}
}

func TestWhatIsKnownOfATaskIsTold(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1", "t2")
	file, err := h.Details(t.Context(), "t1")
	if err != nil || file.Task.ID != "t1" || file.Why == "" || len(file.Events) != 1 || !strings.Contains(string(file.Request), `"task_id":"t1"`) {
		t.Errorf("Details = %+v, %v; want t1, why, one event and the request", file, err)
	}
	if row, err := h.Latest(t.Context(), "t2"); err != nil || row.State != "held" || !slices.Equal(row.Held, []task.Reason{"operator"}) || row.ResultFinal {
		t.Errorf("Latest = %+v, %v; want it held by the operator", row, err)
	}
	if ids, err := h.Find(t.Context(), "t"); err != nil || !slices.Equal(ids, []envelope.ID{"t1", "t2"}) {
		t.Errorf("Find = %v, %v; want t1 and t2", ids, err)
	}
	if s, err := h.Status(t.Context()); err != nil || s.Open["held"] != 2 || s.LastEvent != 2 {
		t.Errorf("Status = %+v, %v; want two held tasks and two events", s, err)
	}
	if _, err := h.Details(t.Context(), "nobody"); kindOf(err) != client.NoTask {
		t.Errorf("Details(nobody) = %v; want %s", err, client.NoTask)
	}
	if _, err := h.Result(t.Context(), "t1"); kindOf(err) != client.NoResult {
		t.Errorf("Result = %v; want %s", err, client.NoResult)
	}
	if _, err := h.Tasks(t.Context(), client.Filter{States: []task.State{"sleeping"}}); kindOf(err) != client.BadRequest {
		t.Errorf("Tasks(sleeping) = %v; want %s", err, client.BadRequest)
	}
}

func TestWhatPeopleWereAskedIsToldOfManyTasks(t *testing.T) {
	h := open(t, stranger)
	var ids []envelope.ID
	var names []string
	for n := range 2*client.MostAsked + 1 {
		ids, names = append(ids, envelope.ID(fmt.Sprintf("t%d", n))), append(names, fmt.Sprintf("t%d", n))
	}
	h.remember(t, names...)
	all, err := h.Asked(t.Context(), append([]envelope.ID{"nobody"}, ids...))
	if err != nil || len(all) != len(ids) {
		t.Fatalf("Asked = %d tasks, %v; want %d", len(all), err, len(ids))
	}
	for i, found := range all {
		one, err := h.Details(t.Context(), ids[i])
		if err != nil || found.Task.ID != ids[i] || !reflect.DeepEqual(found.Approvals, one.Approvals) {
			t.Fatalf("Asked tells %+v of %s; Details tells %+v, %v", found, ids[i], one, err)
		}
	}
}

func TestAStoryOfManyChaptersIsToldToItsEnd(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
		for range 1000 {
			if err := tx.Log(task.Event{Time: time.Now(), Kind: "task.duplicate", Task: "t1", Revision: 1}); err != nil {
				return err
			}
		}
		return tx.Log(task.Event{Time: time.Now(), Kind: "task.held", Task: "t1", Revision: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := h.Details(t.Context(), "t1")
	if err != nil || len(file.Events) != 1000 || file.Events[999].Kind != "task.held" || file.Events[998].Seq != file.Events[999].Seq-1 {
		t.Errorf("Details has %d events, %v; want the latest thousand, in order", len(file.Events), err)
	}
}

func TestAnIDMayLookLikeAPath(t *testing.T) {
	h := open(t, stranger)
	for _, id := range []envelope.ID{".", "%2e", "a?b#c", "row"} {
		h.remember(t, string(id))
		if row, err := h.Latest(t.Context(), id); err != nil || row.ID != id {
			t.Errorf("Latest(%s) = %+v, %v; want it", id, row, err)
		}
		if file, err := h.Details(t.Context(), id); err != nil || file.Task.ID != id {
			t.Errorf("Details(%s) = %+v, %v; want its own", id, file.Task, err)
		}
		if row, err := h.Cancel(t.Context(), id, client.ControlOptions{}); err != nil || row.ID != id || row.Status != envelope.Stopped {
			t.Errorf("Cancel(%s) = %+v, %v; want it cancelled", id, row, err)
		}
	}
}

func TestEventsComeWhenTheyAreCommittedAndNoneIsMissed(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	const many = 50
	var got []int64
	enough := fmt.Errorf("enough")
	following := startAll(func() {
		err := h.Follow(t.Context(), "", 0, func(e client.Event) error {
			if got = append(got, e.Seq); len(got) == many+1 {
				return enough
			}
			return nil
		})
		if err != enough {
			t.Errorf("Follow = %v; want it to go on", err)
		}
	})
	for n := range many {
		h.remember(t, fmt.Sprint("n", n))
	}
	following.Wait()
	for i, seq := range got {
		if seq != int64(i+1) {
			t.Fatalf("event %d has seq %d", i, seq)
		}
	}
}

func TestAStreamIsResumedWhereItBroke(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1", "t2", "t3")
	for _, c := range []struct {
		header, query, want string
	}{
		{"2", "", "id: 3"},
		{"2", "?after=0", "id: 3"}, // the header is the later word
		{"", "?after=1", "id: 2"},
		{"", "?after=0&task=t3", "id: 3"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://x/v1/events"+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			request.Header.Set("Last-Event-ID", c.header)
		}
		response, err := h.raw().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len(c.want))
		if _, err := response.Body.Read(first); err != nil || string(first) != c.want {
			t.Errorf("events%s after %q begin with %q, %v; want %q", c.query, c.header, first, err, c.want)
		}
		response.Body.Close()
	}
}

func TestAStreamGoesOnBehindWhatWasForgottenAndNotBehindWhatNeverWas(t *testing.T) {
	h := open(t, stranger)
	never := func(client.Event) error { return errSeen }
	if err := h.Follow(t.Context(), "", 1, never); kindOf(err) != client.Conflict {
		t.Errorf("Follow after an event that never was = %v; want %s", err, client.Conflict)
	}
	err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
		if err := tx.Log(task.Event{Time: time.Now(), Kind: "old"}); err != nil {
			return err
		}
		_, _, err := tx.DropEvents(time.Now().Add(time.Hour), 0, 99)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.remember(t, "t1")
	if err := h.Follow(t.Context(), "", 1, never); err != errSeen {
		t.Errorf("Follow after an event that is forgotten = %v; want the next", err)
	}
}

// raw speaks plain HTTP to the daemon.
func (h *fixture) raw() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: h.dial}}
}

func TestWithoutANumberAStreamBeginsNow(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "before")
	response, err := h.raw().Get("http://x/v1/events")
	if err != nil {
		t.Fatal(err) // the header is there before anything happens
	}
	defer response.Body.Close()
	h.remember(t, "after")
	first := make([]byte, len("id: 2"))
	if _, err := response.Body.Read(first); err != nil || string(first) != "id: 2" {
		t.Errorf("the stream begins with %q, %v; want id: 2", first, err)
	}
}

func TestWhoDoesNotListenKeepsNobodyWaiting(t *testing.T) {
	h := open(t, stranger)
	response, err := h.raw().Get("http://x/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() // and is never read from
	big := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 8 { // more than a socket holds
		err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
			return tx.Log(task.Event{Time: time.Now(), Kind: "big", Data: fmt.Appendf(nil, `{"x":%s}`, big)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if s, err := h.Status(t.Context()); err != nil || s.LastEvent != 8 {
		t.Errorf("Status = %+v, %v; want 8 events", s, err)
	}
}
