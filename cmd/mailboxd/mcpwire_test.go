package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// A wireEditor writes to a mailboxd mcp byte by byte what it wants to.
type wireEditor struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// A wireAnswer is a message that mailboxd mcp has written.
type wireAnswer struct {
	Version string `json:"jsonrpc"`
	ID      any    `json:"id"`
	Error   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
}

// wire starts a mailboxd mcp and shakes hands with it.
func (m *manager) wire() *wireEditor {
	m.t.Helper()
	e := &wireEditor{t: m.t, cmd: exec.Command("mailboxd", "mcp", "--config", filepath.Join(m.dir, "config.yaml"))}
	e.cmd.Env = m.env
	in, err := e.cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { e.cmd.Process.Kill() })
	e.in, e.out = in, bufio.NewReader(out)
	e.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	e.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	return e
}

func (e *wireEditor) write(bytes string) {
	e.t.Helper()
	if _, err := io.WriteString(e.in, bytes); err != nil {
		e.t.Fatal(err)
	}
}

// read reads the next message.
func (e *wireEditor) read() (a wireAnswer) {
	e.t.Helper()
	line, err := e.out.ReadString('\n')
	if err != nil {
		e.t.Fatalf("the server has hung up: %v", err)
	}
	if err := json.Unmarshal([]byte(line), &a); err != nil || a.Version != "2.0" {
		e.t.Fatalf("standard output has %q: %v", line, err)
	}
	return a
}

// ask writes a line and reads its answer.
func (e *wireEditor) ask(line string) wireAnswer {
	e.t.Helper()
	e.write(line + "\n")
	return e.read()
}

func TestAMalformedLineIsAnsweredAndTheServerGoesOn(t *testing.T) {
	m := newManager(t)
	m.configure("")
	e := m.wire()
	for _, c := range []struct {
		name, line string
		code       int
		id         any
	}{
		{"no JSON", `what is this`, -32700, nil},
		{"half an object", `{"jsonrpc":"2.0","id":1,`, -32700, nil},
		{"two values", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, -32700, nil},
		{"a control character", "\x00", -32700, nil},
		{"no UTF-8", "\"\xff\"", -32700, nil},
		{"too long", `"` + strings.Repeat("x", 17<<20) + `"`, -32600, nil},
		{"a number", `42`, -32600, nil},
		{"an object that is no message", `{}`, -32600, nil},
		{"another version", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, -32600, float64(7)},
		{"a method that is no string", `{"jsonrpc":"2.0","id":"x","method":7}`, -32600, "x"},
		{"an id that is no id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, nil},
		{"an empty batch", `[]`, -32600, nil},
		{"a batch of nonsense", `[1]`, -32600, nil},
		{"too deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), -32600, nil},
	} {
		if got := e.ask(c.line); got.Error.Code != c.code || got.ID != c.id || got.Error.Message == "" {
			t.Errorf("%s is answered by %+v; want code %d for id %v", c.name, got, c.code, c.id)
		}
		if got := e.ask(`{"jsonrpc":"2.0","id":"still there","method":"ping"}`); got.ID != "still there" || got.Error.Code != 0 {
			t.Fatalf("after %s a ping is answered by %+v", c.name, got)
		}
	}
	// Empty lines and answers that nobody asked for are no requests: they get no answer.
	e.write("\n  \r\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"your line was no JSON"}}` + "\n")
	e.write(`[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"in a batch","method":"ping"}]` + "\r\n")
	if got := e.read(); got.ID != "in a batch" {
		t.Errorf("a batch with a ping is answered by %+v", got)
	}
	e.in.Close()
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("mailboxd mcp: %v; want exit 0", err)
	}
}

func TestNoErrorOfAResourceHasTheCodeZero(t *testing.T) {
	m := newManager(t)
	m.configure("")
	e := m.wire()
	for _, uri := range []string{
		`"mailbox://results/nothing"`, `"mailbox://tasks/nothing"`, `"mailbox://results/"`, `"mailbox://results/a%2Fb"`, `"mailbox://results/%zz"`,
		`"mailbox://tasks/..%2F..%2Fetc%2Fpasswd"`, `"mailbox://else/x"`, `"mailbox:"`, `"file:///etc/passwd"`, `""`, `7`, `null`,
	} {
		for _, method := range []string{"resources/read", "resources/subscribe"} {
			got := e.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"uri":%s}}`, method, uri))
			wellFormed := uri == `"mailbox://results/nothing"` || uri == `"mailbox://tasks/nothing"`
			switch {
			case wellFormed && method == "resources/subscribe": // it may still come
				if got.Error.Message != "" {
					t.Errorf("%s %s is refused: %+v", method, uri, got.Error)
				}
			case got.Error.Code != -32602 || got.Error.Message == "":
				t.Errorf("%s %s is answered by %+v; want code -32602", method, uri, got.Error)
			}
		}
	}
}

// The SDK reads the parameters before any handler of ours does.
func TestNoErrorOfAParameterHasTheCodeZero(t *testing.T) {
	m := newManager(t)
	m.configure("")
	e := m.wire()
	for _, request := range []string{
		`"method":"resources/read","params":5`, `"method":"resources/read","params":[]`, `"method":"resources/read"`,
		`"method":"tools/call","params":{"name":7}`, `"method":"tools/call","params":{"name":"no_such_tool"}`,
		`"method":"no/such/method","params":{}`,
	} {
		if got := e.ask(`{"jsonrpc":"2.0","id":1,` + request + `}`); got.Error.Code >= 0 {
			t.Errorf("%s is answered by %+v; want an error with a code", request, got)
		}
	}
}

func TestNoTaskIsListedWhenNoneIsAskedFor(t *testing.T) {
	m := newManager(t)
	m.configure("")
	got := m.wire().ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tasks","arguments":{"limit":0}}}`)
	if !got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, "limit: must be") {
		t.Errorf("list_tasks with limit 0 is answered by %+v; want it refused", got)
	}
}
