// Package client asks the daemon over its control socket, as our own tools do.
// It says whether there is a daemon, and what the daemon says, and knows nothing
// by itself.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
)

// ErrDown says that no daemon answers on the socket.
var ErrDown = errors.New("the daemon is not running")

// An Error is what the daemon answers to a request that it does not fulfil. Its
// Kind is one of the kinds below.
type Error struct {
	Kind    string `json:"kind"`    // for programs
	Message string `json:"message"` // for people
}

// The kinds of Error, each with its HTTP status.
const (
	BadRequest = "bad_request"  // 400: the request cannot be understood
	Forbidden  = "forbidden"    // 403: the caller may not do this
	NoTask     = "unknown_task" // 404: the ledger has no such task
	NoResult   = "no_result"    // 404: the task has no final result yet
	NoRoute    = "no_route"     // 404: there is nothing at that path, or not for that method
	Conflict   = "conflict"     // 409: it does not go with where the task is
	Internal   = "internal"     // 500: it did not work
	Stopping   = "stopping"     // 503: the daemon is stopping; ask the next one
	Busy       = "busy"         // 503: too many are connected; try again soon
	Unfinished = "unfinished"   // 504: it is begun, and was not over in the time given
)

func (e *Error) Error() string { return e.Message }

// A Client asks one daemon. Only Open makes one. It may be used from several
// goroutines at once.
type Client struct {
	location SocketPath
	http     *http.Client
}

// greeting is how long a daemon may take to say that it is there.
const greeting = 2 * time.Second

// Open finds the daemon of a mailbox at the first of the places where one
// answers. When none does, the error wraps ErrDown.
func Open(ctx context.Context, places ...SocketPath) (*Client, error) {
	cause := ErrDown
	for _, p := range places {
		c := &Client{location: p, http: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) },
		}}}
		hello, stop := context.WithTimeout(ctx, greeting)
		_, err := c.Brief(hello)
		stop()
		if err == nil {
			return c, nil
		}
		c.Close()
		if _, answered := errors.AsType[*Error](err); answered {
			return nil, err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			cause = fmt.Errorf("%w, or does not answer on %s", ErrDown, p)
		}
	}
	return nil, cause
}

// Close hangs up.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Where returns the path of the socket.
func (c *Client) Where() string { return c.location.String() }

// get asks for what is at a path.
func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.call(ctx, http.MethodGet, path, nil, answer)
}

// post asks for something to be done.
func (c *Client) post(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, body, answer)
}

func (c *Client) call(ctx context.Context, method, path string, body []byte, answer any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if raw, ok := answer.(*[]byte); ok {
		*raw, err = io.ReadAll(response.Body)
	} else {
		err = json.UnmarshalRead(response.Body, answer)
	}
	if err != nil {
		return fmt.Errorf("read answer to %s %s: %w", method, path, down(ctx, err))
	}
	return nil
}

// send returns the response to a request that was fulfilled, and an *Error for
// one that was not.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://mailboxd"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, down(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	var failure Failure
	if err := json.UnmarshalRead(io.LimitReader(response.Body, 1<<20), &failure); err != nil {
		return nil, fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return nil, &failure.Error
}

// down tells a daemon that is gone, or goes while it is asked, from a caller who
// does not want to wait any more.
func down(ctx context.Context, err error) error {
	_, network := errors.AsType[*net.OpError](err)
	if ctx.Err() == nil && (network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	return err
}
