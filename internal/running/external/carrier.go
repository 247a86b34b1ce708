package external

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"mailboxd/internal/running/remote"
)

// A bearerCarrier sends the requests of an MCP client to one host with the token. It sends none
// twice, and limits the answers.
type bearerCarrier struct {
	next  http.RoundTripper
	token string
	host  string

	mu     sync.Mutex  // guards the fields below
	status int         // of the last answer
	header http.Header // of the same
}

// RoundTrip implements http.RoundTripper.
func (c *bearerCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != c.host {
		return nil, fmt.Errorf("%s is another host than %s; that is refused", req.URL.Host, c.host)
	}
	req = req.Clone(req.Context())
	req.GetBody = nil
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.status, c.header = resp.StatusCode, resp.Header
	c.mu.Unlock()
	resp.Body = &limitedBody{ReadCloser: resp.Body}
	return resp, nil
}

// A limitedBody fails after maxAnswer bytes.
type limitedBody struct {
	io.ReadCloser
	count int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.count += int64(n); b.count > maxAnswer {
		return 0, errTooLarge
	}
	return n, err
}

// A messenger sends the requests of an A2A client, and ends each that gets no answer in time.
type messenger struct {
	bearerCarrier
	header, idle time.Duration
}

// messenger returns a client for the agent. It follows no redirect.
func (h *host) messenger() *http.Client {
	m := &messenger{header: time.Duration(h.Service.HeaderTimeout), idle: time.Duration(h.Service.IdleTimeout)}
	m.next, m.token, m.host = h.client.Transport, h.Bearer, h.to.Host
	return &http.Client{Transport: m, CheckRedirect: h.client.CheckRedirect}
}

// RoundTrip implements http.RoundTripper. A status that says all is a StatusError.
func (m *messenger) RoundTrip(req *http.Request) (*http.Response, error) {
	w := watch(req.Context(), m.header)
	resp, err := m.bearerCarrier.RoundTrip(req.WithContext(w.ctx))
	if err != nil {
		defer w.stop()
		return nil, &transportError{w.cause(err)}
	}
	w.next(m.idle)
	resp.Body = &watchedBody{w.reader(resp.Body), resp.Body, w}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode < 300 ||
		kind == "application/json" && !slices.Contains(alone, resp.StatusCode) && resp.StatusCode >= 400 {
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, &remote.StatusError{Status: resp.StatusCode, Header: resp.Header}
}

// alone are the statuses of which the body says nothing more.
var alone = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// A transportError is why an answer didn't arrive, or not all of it.
type transportError struct{ error }

// Unwrap returns the cause.
func (e *transportError) Unwrap() error { return e.error }

// A watchedBody is an answer that ends when nothing comes for too long.
type watchedBody struct {
	io.Reader
	io.Closer
	watched *watched
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF { // EOF is passed on as it is: readers compare it
		err = &transportError{b.watched.cause(err)}
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.watched.stop()
	return b.Closer.Close()
}
