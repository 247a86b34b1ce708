package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// stream sends events as they are committed: server-sent events whose id is the ledger's sequence
// number. A client that lost the connection continues by Last-Event-ID or ?after=. Without either,
// it gets the events from now on. The connection of a slow reader is closed; no other one waits.
func (d *Server) stream(w http.ResponseWriter, r *http.Request) {
	id, err := taskIn(r)
	if err != nil {
		refuse(w, r, d.opts.Log, err)
		return
	}
	after, err := d.startOf(r)
	if err != nil {
		refuse(w, r, d.opts.Log, err)
		return
	}
	d.follow(w, r, after, func(text *bytes.Buffer, after int64) (int64, error) { return d.write(r, text, id, after) })
}

// follow sends what write writes of the events after a sequence number, as they are committed,
// until the reader is gone or too slow. write returns the number of the last event.
func (d *Server) follow(w http.ResponseWriter, r *http.Request, after int64, write func(text *bytes.Buffer, after int64) (int64, error)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for out := http.NewResponseController(w); ; {
		changed := d.engine.Ledger.Changed() // before reading: events in between are sent next
		var text bytes.Buffer
		last, err := write(&text, after)
		if err == nil {
			err = out.SetWriteDeadline(time.Now().Add(slow))
		}
		if err == nil {
			_, err = w.Write(text.Bytes())
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return // gone, or too slow; its next connection continues there
		}
		if last > after {
			after = last
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// startOf returns the sequence number behind which a stream begins.
func (d *Server) startOf(r *http.Request) (int64, error) {
	last, err := d.engine.Ledger.LastEvent(r.Context())
	if err != nil {
		return 0, err
	}
	after, err := askedStart(r, last)
	if err == nil && after > last {
		return 0, &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("there is no event %d yet, the last is %d: the ledger was begun anew; start with 0", after, last)}
	}
	return after, err
}

// askedStart is the sequence number that a request names, or the last.
func askedStart(r *http.Request, last int64) (int64, error) {
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		if seq, err := strconv.ParseInt(text, 10, 64); err == nil && seq >= 0 {
			return seq, nil
		}
		return 0, bad("Last-Event-ID %q is no number", text)
	}
	return number(r, "after", last)
}

// write writes a page of the events after a sequence number, and returns the number of the last one.
func (d *Server) write(r *http.Request, text *bytes.Buffer, id envelope.ID, after int64) (int64, error) {
	events, err := d.records.Events(r.Context(), id, after, maxEvents)
	for _, e := range events {
		if err := writeEvent(text, e); err != nil {
			return 0, err
		}
		after = e.Seq
	}
	return after, err
}

func writeEvent(text *bytes.Buffer, e client.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	fmt.Fprintf(text, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data)
	return nil
}
