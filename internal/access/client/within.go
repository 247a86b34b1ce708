package client

import (
	"bytes"
	"io"
	"net/http"
)

// Within returns a client whose requests are answered by a handler in this process, such as
// that of a ledger without a daemon.
func Within(h http.Handler) *Client {
	return &Client{http: &http.Client{Transport: within{h}}}
}

// within answers requests with a handler. It keeps an answer in memory until it is whole, so it
// is not for streams.
type within struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t within) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &wholeAnswer{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err // what the handler says of it is less plain
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// A wholeAnswer implements http.ResponseWriter.
type wholeAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *wholeAnswer) Header() http.Header                  { return w.header }
func (w *wholeAnswer) WriteHeader(status int)               { w.status = status }
func (w *wholeAnswer) Write(text []byte) (n int, err error) { return w.body.Write(text) }
