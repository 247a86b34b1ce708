package differential_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What follows is what the harness needs to know of docs/api.md. Everything else is
// compared as it is.

type task struct {
	ID        string    `json:"task_id"`
	Revision  int       `json:"revision"`
	State     string    `json:"state"`
	Held      []string  `json:"held"`
	Until     time.Time `json:"until"`
	Attempt   int       `json:"attempt"`
	Agent     string    `json:"agent"`
	Requester string    `json:"requester"`
	Final     bool      `json:"result_final"`
	Depth     int       `json:"depth"`
	Dialect   string    `json:"dialect"`
}

type page struct {
	Tasks []task `json:"tasks"`
}

type status struct {
	Paused    []string `json:"paused"`
	LastEvent int64    `json:"last_event"`
}

type cursors struct {
	Files []struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
	} `json:"files"`
}

type taskDetails struct {
	Children     []string       `json:"children"`
	Approvals    []approval     `json:"approvals"`
	Conversation *notifications `json:"conversation"`
	Older        *notifications `json:"talk"` // the name in builds before the rename
	Messages     []message      `json:"messages"`
	Events       []event        `json:"events"`
}

type notifications struct {
	Notified int64 `json:"told"`
	Open     bool  `json:"open"`
}

type approval struct {
	Decision string `json:"decision"`
}

type message struct {
	Inbox  string    `json:"inbox"`
	Posted time.Time `json:"posted"`
}

type event struct {
	Seq  int64          `json:"seq"`
	Time time.Time      `json:"time"`
	Task string         `json:"task_id"`
	Kind string         `json:"kind"`
	Rev  int            `json:"revision"`
	Data jsontext.Value `json:"data"`
}

// ask sends a request to the control socket and returns the status and the body.
func (s *site) ask(ctx context.Context, method, path, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://mailboxd"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// get reads a JSON answer.
func (s *site) get(ctx context.Context, path string, answer any) error {
	code, text, err := s.ask(ctx, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", path, code, text)
	}
	return json.Unmarshal(text, answer)
}
