package mcpserver_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/mcpserver"
)

const handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// An output collects what is written to it.
type output struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) Close() error { return nil }

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// serveText serves a mailbox to input that ends, and returns what the server wrote.
func serveText(t *testing.T, box mcpserver.Mailbox, input string) string {
	t.Helper()
	var out output
	if err := mcpserver.Serve(context.Background(), mcpserver.Lines(io.NopCloser(strings.NewReader(input)), &out), box, mcpserver.Options{}); err != nil {
		t.Error(err)
	}
	return out.String()
}

func TestInputThatEndsStillGetsItsAnswers(t *testing.T) {
	box := empty(t)
	synctest.Test(t, func(t *testing.T) {
		box.Daemon = func(context.Context) (*client.Client, error) {
			time.Sleep(30 * time.Second)
			return nil, client.ErrDown
		}
		got := serveText(t, box, handshake+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel_task","arguments":{"task_id":"x"}}}`)
		if !strings.Contains(got, `"id":0,"result"`) || !strings.Contains(got, "start it with: mailboxd serve") {
			t.Errorf("the server wrote %s; want the answers to both requests", got)
		}
	})
}

func TestAWrongParameterIsNamedInPlainWords(t *testing.T) {
	for request, want := range map[string]string{
		`"method":"tools/call","params":{"name":7}`:                                  "params.name: must be text",
		`"method":"resources/read","params":{"uri":7}`:                               "params.uri: must be text",
		`"method":"tools/call","params":5`:                                           "params: can't be read; they must be an object",
		`"method":"tools/call","params":{"name":"no_such"}`:                          `unknown tool \"no_such\"`,
		`"method":"tools/call","params":{"name":"read_result","arguments":5}`:        "arguments: must be an object",
		`"method":"tools/call","params":{"name":"read_result","arguments":{"id":1}}`: "id: no such argument; there are task_id",
	} {
		got := serveText(t, empty(t), handshake+`{"jsonrpc":"2.0","id":1,`+request+`}`)
		if !strings.Contains(got, want) || strings.Contains(got, "Go ") || strings.Contains(got, "unmarshal") {
			t.Errorf("%s is answered by %s; want %s", request, got, want)
		}
	}
}

func TestARequestWithoutAnAnswerEndsSoonAfterTheInput(t *testing.T) {
	box := empty(t)
	synctest.Test(t, func(t *testing.T) {
		box.Read = func(ctx context.Context, _ func(*client.Client) error) error {
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		serveText(t, box, handshake+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tasks","arguments":{}}}`)
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("the server ended %v after its input; want about a minute", took)
		}
	})
}
