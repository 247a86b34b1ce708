package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"mailboxd/internal/access/replay"
)

// clutchStream sends events as messages of Clutch, like stream: the id is the sequence number of
// the event, and the data is the envelope (CLUTCH-77). An event that is several messages has its
// id at the last one, so that a reader who lost the connection gets all of them again.
func (d *Server) clutchStream(w http.ResponseWriter, r *http.Request) {
	after, err := d.startOf(r)
	if err != nil {
		refuse(w, r, d.opts.Log, err)
		return
	}
	store, wanted := d.records.eventStore(), clutchFilterIn(r)
	d.follow(w, r, after, func(text *bytes.Buffer, after int64) (int64, error) {
		return store.write(r.Context(), text, after, wanted)
	})
}

// write writes the wanted messages of the events after a sequence number, and returns the number
// of the last event.
func (v *eventStore) write(ctx context.Context, text *bytes.Buffer, after int64, wanted clutchFilter) (int64, error) {
	events, err := v.Ledger.Events(ctx, "", after, maxEvents)
	if err != nil {
		return after, err
	}
	for _, e := range events {
		after = e.Seq
		said, err := v.messages(ctx, e)
		if err != nil {
			return after, err
		}
		for i, m := range said {
			if !wanted.matches(m) {
				continue
			}
			if i == len(said)-1 {
				fmt.Fprintf(text, "id: %d\n", e.Seq)
			}
			fmt.Fprintf(text, "event: %s\ndata: %s\n\n", m.Type, m.Line)
		}
	}
	return after, nil
}

// A clutchFilter says which messages a reader wants. Empty fields want all.
type clutchFilter struct{ run, thread, task, from, word string }

func clutchFilterIn(r *http.Request) clutchFilter {
	q := r.URL.Query()
	return clutchFilter{q.Get("run_id"), q.Get("thread_id"), q.Get("task_id"), q.Get("from"), q.Get("type")}
}

func (f clutchFilter) matches(m replay.Message) bool {
	return (f.run == "" || f.run == m.Run) && (f.thread == "" || f.thread == m.Thread) && (f.task == "" || f.task == m.Task) &&
		(f.from == "" || f.from == m.From || f.from == "agent:"+m.From) && (f.word == "" || f.word == m.Type)
}
