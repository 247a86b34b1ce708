package acp

import (
	"bufio"
	"bytes"
	"context"
	stdjson "encoding/json" // for the types of the SDK, which are made for it
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxFrame limits a message of an agent, in bytes.
const maxFrame = 16 << 20

// Codes of errors in JSON-RPC and ACP.
const (
	codeLogin    = -32000
	codeNoMethod = -32601
)

// A frame is a message of the agent: a request, a notification or a response.
type frame struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  *rpcError      `json:"error"`
}

type rpcError struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    jsontext.Value `json:"data"`
}

// A client sends messages to an agent, and reads what it sends, in order.
type client struct {
	receive func(line []byte, f frame) // gets requests and notifications
	ended   chan struct{}              // closed when reading has ended
	err     error                      // why; set before ended is closed

	writing sync.Mutex // guards in; it is held while the agent doesn't read
	in      io.Writer

	mu   sync.Mutex            // guards what follows
	last int                   // the id of the last request
	open map[string]chan frame // requests without a response, by id
}

func newClient(in io.Writer, receive func([]byte, frame)) *client {
	return &client{in: in, receive: receive, ended: make(chan struct{}), open: map[string]chan frame{}}
}

// read reads messages until the output ends or breaks the protocol.
func (c *client) read(out io.Reader) {
	defer close(c.ended)
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := readFrame(r)
		if err == nil && len(bytes.TrimSpace(line)) > 0 {
			err = c.accept(line)
		}
		if err != nil {
			c.err = err
			return
		}
	}
}

// readFrame reads a line without its line break.
func readFrame(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			return nil, failure(kindProtocol, "the agent sent a message of more than %d MiB", maxFrame>>20)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, io.EOF // without a line break the message isn't whole
		}
	}
}

// accept hands on a message.
func (c *client) accept(line []byte) error {
	var f frame
	if err := json.Unmarshal(line, &f, lenient); err != nil {
		return failure(kindProtocol, "the agent printed a line that is no message: %q", short(string(line)))
	}
	switch {
	case f.Method != "":
		c.receive(line, f)
	case f.ID != nil && (f.Result != nil || f.Error != nil):
		c.mu.Lock()
		reply := c.open[string(f.ID)]
		delete(c.open, string(f.ID))
		c.mu.Unlock()
		if reply != nil {
			reply <- f
		}
	default:
		return failure(kindProtocol, "the agent printed a message with neither a method nor a result: %q", short(string(line)))
	}
	return nil
}

// call sends a request and returns the result.
func (c *client) call(ctx context.Context, method string, params any) (jsontext.Value, error) {
	reply := make(chan frame, 1)
	c.mu.Lock()
	c.last++
	id := strconv.Itoa(c.last)
	c.open[id] = reply
	c.mu.Unlock()
	// An agent that has ended is found below.
	_ = c.write(map[string]any{"jsonrpc": "2.0", "id": stdjson.Number(id), "method": method, "params": params})
	select {
	case f := <-reply:
		return f.result(method)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.ended:
	}
	select {
	case f := <-reply: // it came before the end
		return f.result(method)
	default:
	}
	if errors.Is(c.err, io.EOF) {
		return nil, failure(kindProtocol, "the agent ended before it answered %s", method)
	}
	return nil, c.err
}

// result returns the result of a response.
func (f frame) result(method string) (jsontext.Value, error) {
	switch e := f.Error; {
	case e == nil:
		return f.Result, nil
	case e.Code == codeLogin:
		return nil, failure(kindLogin, "%s", e.words())
	default:
		return nil, failure(kindAgent, "%s: %s", method, e.words())
	}
}

// words returns what the agent says of an error.
func (e *rpcError) words() string {
	if len(e.Data) == 0 || e.Data.Kind() == 'n' {
		return e.Message
	}
	data := string(e.Data)
	if e.Data.Kind() == '"' {
		_ = json.Unmarshal(e.Data, &data, lenient)
	}
	return e.Message + ": " + short(data)
}

// notify sends a notification. An agent that doesn't read it is ended anyway.
func (c *client) notify(method string, params any) {
	_ = c.write(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// reply answers a request. A nil result says that there is no such method.
func (c *client) reply(id jsontext.Value, result any) {
	message := map[string]any{"jsonrpc": "2.0", "id": stdjson.RawMessage(id)}
	if message["result"] = result; result == nil {
		delete(message, "result")
		message["error"] = map[string]any{"code": codeNoMethod, "message": "Method not found"}
	}
	_ = c.write(message) // an agent that has ended is found by its output
}

func (c *client) write(message map[string]any) error {
	text, err := stdjson.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.in.Write(append(text, '\n'))
	return err
}

// maxQuote limits what a message quotes of the agent, in bytes.
const maxQuote = 300

// short cuts a text for a message.
func short(text string) string {
	if len(text) <= maxQuote {
		return text
	}
	end := maxQuote
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
