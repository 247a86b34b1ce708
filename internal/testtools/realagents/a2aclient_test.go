package realagents_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// A gatewayBox is a box whose mailbox has agents, and a gateway before it.
type gatewayBox struct {
	*box
	url, token string
}

// newGatewayBox starts a daemon with three agents, and a gateway.
func newGatewayBox(t *testing.T) gatewayBox {
	t.Helper()
	needPrograms(t)
	t.Parallel()
	g := gatewayBox{box: nodeBox(t)}
	made := strings.Fields(g.must(g.mailboxd(g.work, "gateway", "token", "acme")).out)
	g.token = made[slices.IndexFunc(made, func(w string) bool { return strings.HasPrefix(w, "mbx_") })]
	g.write("asker.sh", `set -- 'which colour?' true
grep -q green "$MAILBOX_CONVERSATION_FILE" && set -- 'the colour is green' false
printf '{"type":"message","task_id":"%s","sender_id":"asker","recipient_id":"acme"' "$MAILBOX_TASK_ID"
printf ',"content":"%s","expects_reply":%s}\n' "$@"
`)
	g.write(configFile, fmt.Sprintf(`root: %q
agents:
  - {id: echo, exec: {command: [sed, -n, 's/.*"description":"\([^"]*\)".*/echo: \1/p'], output: text}}
  - {id: waits, exec: {command: [sleep, "600"], output: text}}
  - {id: asker, dialect: cap, exec: {command: [sh, %q]}}
senders:
  - {name: acme, token: %s}
`, g.home+"/box", g.home+"/asker.sh", made[len(made)-1]))
	g.serve()
	said := g.start(t, nil, os.Getenv(daemonVariable), "gateway", "--listen", "127.0.0.1:0").next()
	g.url = strings.TrimPrefix(said, "A2A clients reach this mailbox at ")
	return g
}

// A seen is a line of the client of testdata/a2a.
type seen struct {
	Kind      string `json:"kind"`
	ID        string `json:"id"`
	State     string `json:"state"`
	Text      string `json:"text"`
	Artifacts []struct {
		Text string `json:"text"`
	} `json:"artifacts"`
	Name   string   `json:"name"`
	Skills []string `json:"skills"`

	Error   string `json:"error"`
	Message string `json:"message"`
}

func (g gatewayBox) client(t *testing.T, binding, agent string, args ...string) *printer {
	t.Helper()
	args = append([]string{"client.mjs", g.url, binding}, args...)
	return g.start(t, []string{"A2A_TOKEN=" + g.token, "A2A_AGENT=" + agent}, node(), args...)
}

// line returns the next line of a client.
func (p *printer) line() (s seen) {
	p.t.Helper()
	text := p.next()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		p.t.Fatalf("the client printed %q: %v", text, err)
	}
	return s
}

// last waits for the end of a client, and returns its last line.
func (p *printer) last() (s seen) {
	p.t.Helper()
	_ = p.cmd.Wait() // it fails where its call fails, and says so
	for s = p.line(); len(p.lines) > 0; {
		s = p.line()
	}
	return s
}

func TestAClientOfTheNPMSDKSendsAndReads(t *testing.T) {
	g := newGatewayBox(t)
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		call := func(agent string, args ...string) seen { return g.client(t, binding, agent, args...).last() }
		if got := call("", "card"); got.Name != "mailboxd" || len(got.Skills) != 3 {
			t.Errorf("%s: the card is %+v; want three skills", binding, got)
		}
		sent := call("echo", "send", "hello")
		if sent.State != "COMPLETED" || len(sent.Artifacts) != 1 || sent.Artifacts[0].Text != "echo: hello" {
			t.Errorf("%s: send gave %+v; want the answer", binding, sent)
		}
		if got := call("", "get", sent.ID); got.State != "COMPLETED" || got.ID != sent.ID || len(got.Artifacts) != 1 {
			t.Errorf("%s: get gave %+v; want the same task", binding, got)
		}
		if got := call("echo", "stream", "hello"); got.State != "COMPLETED" {
			t.Errorf("%s: the stream ended with %+v; want a completed task", binding, got)
		}
		asked := call("asker", "send", "paint it")
		if asked.State != "INPUT_REQUIRED" || asked.Text != "which colour?" {
			t.Errorf("%s: send gave %+v; want the question", binding, asked)
		}
		if got := call("asker", "send", "green", asked.ID); got.State != "COMPLETED" || got.ID != asked.ID {
			t.Errorf("%s: the reply gave %+v; want the same task, completed", binding, got)
		}
		if got := call("", "get", "no-such-task"); got.Error != "TaskNotFoundError" {
			t.Errorf("%s: get of no task gave %+v; want that it isn't found", binding, got)
		}
		stranger := gatewayBox{box: g.box, url: g.url, token: "mbx_wrong"}
		if got := stranger.client(t, binding, "echo", "send", "hello").last(); got.Error == "" || !strings.Contains(got.Message, "401") {
			t.Errorf("%s: a wrong token gave %+v; want 401", binding, got)
		}
	}
}

func TestAClientOfTheNPMSDKCancelsAndSubscribesAgain(t *testing.T) {
	g := newGatewayBox(t)
	for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
		begun := g.client(t, binding, "waits", "begin", "wait").last()
		if begun.State != "WORKING" {
			t.Errorf("%s: a message whose answer isn't awaited gave %+v; want a task at work", binding, begun)
		}
		again := g.client(t, binding, "", "resubscribe", begun.ID)
		if got := again.line(); got.Kind != "task" || got.ID != begun.ID || got.State != "WORKING" {
			t.Errorf("%s: the subscription began with %+v; want the task", binding, got)
		}
		if got := g.client(t, binding, "", "cancel", begun.ID).last(); got.State != "CANCELED" {
			t.Errorf("%s: cancel gave %+v; want a cancelled task", binding, got)
		}
		if got := again.last(); got.State != "CANCELED" {
			t.Errorf("%s: the subscription ended with %+v; want the cancellation", binding, got)
		}
		if got := g.client(t, binding, "", "get", begun.ID).last(); got.State != "CANCELED" {
			t.Errorf("%s: get gave %+v; want a cancelled task", binding, got)
		}
	}
}
