package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/running/external"
)

// A server that ends is started again maxRestarts times in restartTime.
const (
	maxRestarts = 5
	restartTime = time.Minute
)

// A server is started at its first use, and again after it has ended.
type server struct {
	Server
	work *sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	client *external.Client
	starts []time.Time
	ended  bool // no use starts it any more
}

// connected returns a connection to the server.
func (s *server) connected(ctx context.Context) (*external.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	if s.ended {
		return nil, errors.New("the run ends")
	}
	for len(s.starts) > 0 && time.Since(s.starts[0]) > restartTime {
		s.starts = s.starts[1:]
	}
	if len(s.starts) > maxRestarts {
		return nil, fmt.Errorf("it was started %d times in the last minute, and ended each time; it isn't started again yet", len(s.starts))
	}
	s.starts = append(s.starts, time.Now())
	c, err := external.Connect(context.WithoutCancel(ctx), s.Service, s.Env, s.Bearer)
	if err != nil {
		return nil, errors.New(s.redacted(err.Error()))
	}
	s.client = c
	s.work.Go(func() {
		c.Wait()
		s.drop(c)
	})
	return c, nil
}

// drop ends a connection. The next use makes another one.
func (s *server) drop(c *external.Client) {
	s.mu.Lock()
	if s.client == c {
		s.client = nil
	}
	s.mu.Unlock()
	c.End()
}

// end ends the server for good.
func (s *server) end() {
	s.mu.Lock()
	c := s.client
	s.ended = true
	s.mu.Unlock()
	if c != nil {
		s.drop(c)
	}
}

// tools lists the tools of the server as it has them now: a definition may change between two calls.
func (s *server) tools(ctx context.Context) ([]*mcp.Tool, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := c.Tools(ctx)
	if err != nil {
		return nil, s.broken(ctx, c, err)
	}
	return tools, nil
}

// broken returns the error of a request. A server that refused the request goes on; any other one ends,
// unless the agent gave up.
func (s *server) broken(ctx context.Context, c *external.Client, err error) error {
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused || ctx.Err() != nil {
		return err
	}
	err = c.Explain(err)
	s.drop(c)
	return errors.New(s.redacted(err.Error()))
}

// call calls a tool once, and returns the result, also as JSON.
func (s *server) call(ctx context.Context, limit time.Duration, p *mcp.CallToolParams) (*mcp.CallToolResult, []byte, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("nothing was sent: the server %s can't be used: %w", s.Service.Server, err)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := c.Call(limited, p)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %v", limit)
	}
	if err != nil {
		err = s.broken(ctx, c, err)
		return nil, nil, fmt.Errorf("the server %s did not answer the call, which isn't made again: %w", s.Service.Server, err)
	}
	if result.NeedsInput() {
		return nil, nil, fmt.Errorf("the tool asks for input, which isn't offered")
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, nil, err
	}
	if clean := redact(text, s.Secrets); string(clean) != string(text) {
		text, result = clean, &mcp.CallToolResult{}
		err = json.Unmarshal(text, result)
	}
	return result, text, err
}

// redacted returns words without the secrets of the server. Its receiver may be nil.
func (s *server) redacted(words string) string {
	if s == nil {
		return words
	}
	return string(redact([]byte(words), s.Secrets))
}
