package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answerAfterEnd is how long requests may still be answered after the end of the input. The
// longest tool takes maxWait.
const answerAfterEnd = maxWait + 10*time.Second

// A lineConn reports the end of the input only when each request before it has its answer,
// because the SDK drops every answer after that report. It gives a code to each error that
// has none: what handlers return has one (see coded), and the SDK itself returns only errors
// about parameters, which are said in plain words.
type lineConn struct {
	mcp.Connection
	open   openRequests
	once   sync.Once
	closed chan struct{}
}

func newLineConn(conn mcp.Connection) *lineConn {
	return &lineConn{Connection: conn, closed: make(chan struct{})}
}

// Read returns the next message.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.open.add(r.ID)
	}
	if errors.Is(err, io.EOF) {
		late := time.NewTimer(answerAfterEnd)
		defer late.Stop()
		select {
		case <-c.open.allAnswered():
		case <-c.closed:
		case <-ctx.Done():
		case <-late.C:
		}
	}
	return m, err
}

// Write writes a message. A request counts as answered also when its answer can't be written.
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, m)
	}
	defer c.open.remove(r.ID)
	if r.Error != nil {
		m = &jsonrpc.Response{ID: r.ID, Error: coded(plain(r.Error), jsonrpc.CodeInvalidParams)}
	}
	return c.Connection.Write(ctx, m)
}

// goField is how the SDK says which parameter has a wrong type.
var goField = regexp.MustCompile(`Go struct field \w+\.\w+\.([\w.]+) of type (\w+)`)

// plain returns an error of the SDK about the types of parameters in words that need no Go.
func plain(err error) error {
	if !strings.Contains(err.Error(), "cannot unmarshal") {
		return err
	}
	words := "params: can't be read; they must be an object"
	if field := goField.FindStringSubmatch(err.Error()); field != nil {
		kind := map[string]string{"string": "text", "bool": "true or false", "int": "a whole number", "map": "an object"}[field[2]]
		words = "params." + field[1] + ": must be " + cmp.Or(kind, "of another type")
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: words}
}

// Close closes the connection, and ends a Read that waits for answers.
func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// openRequests are the requests that were read and have no answer yet. The zero value is
// empty. It may be used from several goroutines at once.
type openRequests struct {
	mu   sync.Mutex // guards ids and none
	ids  map[jsonrpc.ID]bool
	none chan struct{} // closed once ids is empty; nil: nobody waits
}

func (o *openRequests) add(id jsonrpc.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[jsonrpc.ID]bool{}
	}
	o.ids[id] = true
}

func (o *openRequests) remove(id jsonrpc.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.ids, id)
	if len(o.ids) == 0 && o.none != nil {
		close(o.none)
		o.none = nil
	}
}

// allAnswered returns a channel that is closed once no request is open. Nothing may be added
// after the call, and only one caller waits.
func (o *openRequests) allAnswered() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	none := make(chan struct{})
	if len(o.ids) == 0 {
		close(none)
	} else {
		o.none = none
	}
	return none
}
