package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage is how long a line of the protocol may be, in bytes.
const maxMessage = 16 << 20

// Lines is a transport of one message per line, such as a process has on its
// standard input and output. The SDK hangs up at a line that it cannot read.
// Lines answers such a line with an error and goes on: CodeParseError for what
// is no JSON, CodeInvalidRequest for what is no message (JSON-RPC 2.0, section
// 5.1). It passes the messages of a batch on one by one.
func Lines(in io.ReadCloser, out io.WriteCloser) mcp.Transport {
	shared := &lineWriter{WriteCloser: out}
	return &lines{mcp.IOTransport{
		Reader:        &lineReader{Closer: in, in: bufio.NewReader(in), out: shared},
		Writer:        shared,
		MaxLineLength: -1, // lineReader has a bound of its own
	}}
}

type lines struct{ mcp.IOTransport }

func (l *lines) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := l.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return newLineConn(conn), nil
}

// coded returns err with a code of JSON-RPC: its own, or the given one.
func coded(err error, code int64) error {
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok && said.Code != 0 {
		return err
	}
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

// A lineWriter writes each message as a whole.
type lineWriter struct {
	mu sync.Mutex // guards the writer
	io.WriteCloser
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(line)
}

// A lineReader reads the lines that are messages, and answers the others.
type lineReader struct {
	io.Closer
	in   *bufio.Reader
	out  io.Writer
	rest []byte // accepted, and not read yet
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, tooLong, err := r.next()
		switch {
		case tooLong:
			err = r.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the line has more than %d bytes", maxMessage))
		case len(line) > 0:
			err = r.take(line)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next returns the next line without the white space around it; the last one
// may have no line end. Of a line that is too long nothing is kept.
func (r *lineReader) next() (line []byte, tooLong bool, err error) {
	for {
		part, err := r.in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxMessage {
			line, tooLong = line[:0], true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(line) > 0 || tooLong):
			err = nil
		}
		return bytes.TrimSpace(line), tooLong, err
	}
}

// take accepts the messages of a line, and refuses what else it holds.
func (r *lineReader) take(line []byte) error {
	value := jsontext.Value(line)
	if !value.IsValid(jsontext.AllowDuplicateNames(true)) {
		return r.refuse(nil, jsonrpc.CodeParseError, "the line is no JSON")
	}
	messages := []jsontext.Value{value}
	if value.Kind() == '[' {
		if err := json.Unmarshal(value, &messages, jsontext.AllowDuplicateNames(true)); err != nil || len(messages) == 0 {
			return r.refuse(nil, jsonrpc.CodeInvalidRequest, "the batch holds no message")
		}
	}
	for _, m := range messages {
		if _, err := jsonrpc.DecodeMessage(m); err != nil {
			if err := r.refuseMessage(m, err); err != nil {
				return err
			}
			continue
		}
		r.rest = append(append(r.rest, m...), '\n')
	}
	return nil
}

// refuseMessage answers JSON that is no message. An answer gets no answer, or
// two programs might answer each other's errors without end.
func (r *lineReader) refuseMessage(m jsontext.Value, why error) error {
	var about map[string]jsontext.Value
	if json.Unmarshal(m, &about, jsontext.AllowDuplicateNames(true)) == nil && about["method"] == nil &&
		(about["result"] != nil || about["error"] != nil) {
		return nil
	}
	id := about["id"]
	if kind := id.Kind(); kind != '"' && kind != '0' {
		id = nil
	}
	return r.refuse(id, jsonrpc.CodeInvalidRequest, "no JSON-RPC message: "+why.Error())
}

// refuse answers a line; id is nil when nobody can tell what it was.
func (r *lineReader) refuse(id jsontext.Value, code int, why string) error {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	line, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"` // null for nil
		Error   failure        `json:"error"`
	}{"2.0", id, failure{code, why}}, jsontext.AllowInvalidUTF8(true))
	if err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	return err
}
