package external

import (
	"fmt"
	"io"
	"net/http"
	"sync"
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
