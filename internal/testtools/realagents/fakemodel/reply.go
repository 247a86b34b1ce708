package fakemodel

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// A Reply is what the server does with one request. The zero value is an empty text.
type Reply struct {
	Text  string // of the model; for a problem, what the provider says, if it isn't the usual
	Calls []Call
	Usage Usage

	Problem Problem
	After   time.Duration // when the provider says that a problem ends; 0: it doesn't say

	Silent bool // no byte is sent, and the connection stays open
	Cut    bool // the connection ends in the middle of the stream; a reply without a stream is whole
	Short  bool // the stream ends in its middle as if that were all, as some proxies end it
	Hang   bool // the stream stops in the middle, and the connection stays open

	Until <-chan struct{} // the stream stops in the middle until this is closed; nil: it doesn't stop
}

// A Call is a call of a tool.
type Call struct {
	Namespace string // of the tool, in the Responses API; "": it has none
	Tool      string
	Input     map[string]any
}

// Usage counts tokens. Input doesn't include the cached ones.
type Usage struct{ Input, Output, Cached int64 }

// A Problem is an error of a provider.
type Problem int

// Problems, in the forms that each provider documents.
const (
	Unauthorized Problem = iota + 1 // the key or login is refused
	RateLimited                     // too many requests in a minute
	Overloaded                      // 529 of Anthropic, 503 of others
	Unavailable                     // 503
	QuotaUsedUp                     // of a day or a plan
	TooLong                         // the context is too long
)

// DefaultUsage is the usage of the replies that the functions below make.
var DefaultUsage = Usage{Input: 120, Output: 34, Cached: 0}

// Text returns a reply with a text.
func Text(text string) Reply { return Reply{Text: text, Usage: DefaultUsage} }

// ToolCall returns a reply that calls one tool.
func ToolCall(tool string, input map[string]any) Reply {
	return Reply{Calls: []Call{{Tool: tool, Input: input}}, Usage: DefaultUsage}
}

// Fails returns a reply with an error of the provider. after may be 0.
func Fails(p Problem, after time.Duration) Reply { return Reply{Problem: p, After: after} }

// Silence returns a reply that never comes.
func Silence() Reply { return Reply{Silent: true} }

// events writes a stream of server-sent events.
type events struct {
	w     http.ResponseWriter
	pause func(until <-chan struct{}) // or until the client or the server is done
}

func (e *events) start() {
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.WriteHeader(http.StatusOK)
}

// send writes an event. name may be "".
func (e *events) send(name string, value any) {
	raw, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		raw = []byte(err.Error())
	}
	e.raw(name, raw)
}

func (e *events) raw(name string, data []byte) {
	text := "data: " + string(data) + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	_, _ = e.w.Write([]byte(text)) // an error means that the client is gone
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// errShort ends a handler without an error for the client.
var errShort = errors.New("the stream ends here")

// middle ends or stops the stream there, if the reply says so.
func (e *events) middle(r Reply) {
	switch {
	case r.Hang:
		e.pause(nil)
	case r.Until != nil:
		e.pause(r.Until)
	}
	if r.Short {
		panic(errShort)
	}
	if r.Hang || r.Cut {
		panic(http.ErrAbortHandler) // ends the connection without the end of the body
	}
}

// halves splits a text, so that a stream can stop between them.
func halves(text string) (first, second string) {
	middle := len(text) / 2
	return text[:middle], text[middle:]
}

type object = map[string]any

func inputJSON(input map[string]any) string {
	if input == nil {
		return "{}"
	}
	raw, err := json.Marshal(input, json.Deterministic(true))
	if err != nil {
		return "{}"
	}
	return string(raw)
}

// seconds returns a duration in whole seconds, at least one.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }
