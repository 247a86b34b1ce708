package reader_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
)

// history has 5,000 events, one a second; as after a collection, some are gone.
type history struct{}

var firstEvent = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func (h history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/status") {
		_ = json.MarshalWrite(w, client.Status{LastEvent: 5000})
		return
	}
	q := r.URL.Query()
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	_ = json.MarshalWrite(w, client.EventList{Events: h.page(envelope.ID(q.Get("task")), after, limit)})
}

func (history) page(id envelope.ID, after int64, limit int) (page []client.Event) {
	for seq := after + 1; seq <= 5000 && len(page) < limit; seq++ {
		e := client.Event{Seq: seq, Time: firstEvent.Add(time.Duration(seq) * time.Second), Task: envelope.ID(fmt.Sprint("t", seq%10))}
		if (seq < 100 || seq > 4990) == (seq%2 == 0 && seq < 4000) || id != "" && id != e.Task {
			continue
		}
		page = append(page, e)
	}
	return page
}

func TestEventsAreSelectedByNumberTimeAndCount(t *testing.T) {
	all, r := []int64{}, &reader.Reader{Client: client.Within(history{})}
	err := r.Events(t.Context(), reader.EventQuery{}, func(e client.Event) error { all = append(all, e.Seq); return nil })
	if err != nil || len(all) < 100 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	after := func(n int64) []int64 {
		at, _ := slices.BinarySearch(all, n+1)
		return all[at:]
	}
	for name, c := range map[string]struct {
		q    reader.EventQuery
		want []int64
	}{
		"after a number":      {reader.EventQuery{After: 3000}, after(3000)},
		"since a time":        {reader.EventQuery{Since: firstEvent.Add(4000 * time.Second)}, after(3999)},
		"the latest":          {reader.EventQuery{Tail: 20}, all[len(all)-20:]},
		"the latest since":    {reader.EventQuery{Since: firstEvent.Add(4995 * time.Second), Tail: 20}, after(4994)},
		"more than there are": {reader.EventQuery{Tail: 1 << 20}, all},
		"since the future":    {reader.EventQuery{Since: firstEvent.Add(time.Hour * 24)}, nil},
	} {
		var got []int64
		err := r.Events(t.Context(), c.q, func(e client.Event) error { got = append(got, e.Seq); return nil })
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d events, %v; want %d", name, len(got), err, len(c.want))
		}
	}
	var of []client.Event
	if err := r.Events(t.Context(), reader.EventQuery{Task: "t3", Tail: 2}, func(e client.Event) error { of = append(of, e); return nil }); err != nil || len(of) != 2 || of[1].Task != "t3" {
		t.Errorf("the latest of a task are %v, %v; want two", of, err)
	}
}
