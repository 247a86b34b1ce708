package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestEditorsOfAllAgesShareOneDaemon(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: worker, exec: {command: [agent, echo]}}]\n")
	m.start()
	var editors []*mcpEditor
	for _, protocol := range protocols {
		editors = append(editors, m.editor(protocol))
	}
	for n, e := range editors {
		if got := e.InitializeResult().ProtocolVersion; got != protocols[n] {
			t.Errorf("protocol %s was agreed on; want %s", got, protocols[n])
		}
		var sent struct {
			TaskID string `json:"task_id"`
			Served bool   `json:"daemon_running"`
		}
		e.must("send_task", `{"target_agent":"worker","task_type":"work","description":"say it","payload":{"word":"moon"}}`, &sent)
		end := e.wait(sent.TaskID)
		if !sent.Served || end.Result.Status != "ok" || !strings.Contains(end.Result.Output.Summary, "moon") {
			t.Errorf("%s: sent %+v, ended %+v", protocols[n], sent, end)
		}
		for _, other := range editors { // what one has sent, each can read
			var shown exhibit
			if other.must("show_task", fmt.Sprintf(`{"task_id":%q}`, sent.TaskID), &shown); shown.Task.Requester != "ed" {
				t.Errorf("%s: the task was asked for by %q; want ed", protocols[n], shown.Task.Requester)
			}
		}
	}
	var listed struct {
		Tasks []struct{} `json:"tasks"`
	}
	if editors[0].must("list_tasks", `{"state":"done","agent":"worker"}`, &listed); len(listed.Tasks) != len(editors) {
		t.Errorf("%d tasks are listed; want %d", len(listed.Tasks), len(editors))
	}
}

func TestAnEditorIsToldOfAResult(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			m := newManager(t)
			m.configure("agents: [{id: worker, exec: {command: [agent, until-told], env: [GO_ON]}}]\n")
			m.start()
			e := m.editor(protocol)
			const uri = "mailbox://results/a%20task"
			if err := e.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
			e.must("send_task", `{"target_agent":"worker","task_type":"work","description":"d","task_id":"a task"}`, &struct{ TaskID string }{})
			m.awaitFile("go-on.started")
			if _, err := e.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Error("a result was read before there is one")
			}
			if err := os.WriteFile(filepath.Join(m.dir, "go-on"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for {
				select {
				case got := <-e.changed:
					if got != uri {
						t.Fatalf("told of %q; want %q", got, uri)
					}
				case <-t.Context().Done():
					t.Fatal("nobody told of the result")
				}
				result, err := e.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
				if err == nil {
					if text := result.Contents[0].Text; !strings.Contains(text, "was told to go on") {
						t.Errorf("result %s", text)
					}
					return
				}
			}
		})
	}
}

func TestWithoutADaemonAnEditorSendsAndReads(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: worker, exec: {command: [agent, ok]}}]\n")
	e := m.editor(protocols[0])
	sent := struct {
		TaskID string `json:"task_id"`
		Served bool   `json:"daemon_running"`
	}{Served: true}
	e.must("send_task", `{"target_agent":"worker","task_type":"work","description":"d"}`, &sent)
	var end ended
	e.must("wait_result", fmt.Sprintf(`{"task_id":%q,"timeout_seconds":0}`, sent.TaskID), &end)
	if sent.Served || end.Finished || !strings.Contains(end.Why, "mailboxd serve") {
		t.Errorf("sent %+v, and then %+v; want it to wait for a daemon", sent, end)
	}

	serve := m.start()
	if end = e.wait(sent.TaskID); end.Result.Status != "ok" {
		t.Errorf("ended %+v; want ok", end)
	}
	m.stop(serve)

	e.must("read_result", fmt.Sprintf(`{"task_id":%q}`, sent.TaskID), &end)
	var shown exhibit
	e.must("show_task", fmt.Sprintf(`{"task_id":%q}`, sent.TaskID), &shown)
	var listed struct {
		Tasks []struct{} `json:"tasks"`
	}
	e.must("list_tasks", `{}`, &listed)
	if !end.Finished || shown.Task.State != "done" || len(listed.Tasks) != 1 {
		t.Errorf("read %+v, shown %+v, listed %+v", end, shown, listed)
	}
	for _, tool := range []string{
		`cancel_task {"task_id":"x"}`, `claim_task {"agent_id":"worker"}`,
		`submit_result {"task_id":"x","agent_id":"worker","status":"ok","summary":"s"}`,
	} {
		name, arguments, _ := strings.Cut(tool, " ")
		if err := e.ask(name, arguments, &struct{}{}); err == nil || !strings.Contains(err.Error(), "start it with: mailboxd serve") {
			t.Errorf("%s = %v; want how to start the daemon", name, err)
		}
	}
}

// What a client cannot read as a message breaks it.
func TestStandardOutputCarriesTheProtocolAlone(t *testing.T) {
	m := newManager(t)
	m.configure("log: {level: debug}\nagents: [{id: worker, exec: {command: [agent, ok]}}]\n")
	serve := m.start()
	cmd := exec.Command("mailboxd", "mcp", "--config", filepath.Join(m.dir, "config.yaml"))
	cmd.Env = m.env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewReader(out)
	// answered sends a request and reads until its answer, holding each line to the protocol.
	answered := func(id int, method, params string) string {
		t.Helper()
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var message struct {
				Version string `json:"jsonrpc"`
				ID      int    `json:"id"`
			}
			if err := json.Unmarshal([]byte(line), &message); err != nil || message.Version != "2.0" {
				t.Fatalf("standard output has %q: %v", line, err)
			}
			if message.ID == id {
				return line
			}
		}
	}
	answered(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	answered(2, "resources/subscribe", `{"uri":"mailbox://tasks/t1"}`)
	answered(3, "tools/call", `{"name":"send_task","arguments":{"target_agent":"worker","task_type":"w","description":"d","task_id":"t1"}}`)
	if end := answered(4, "tools/call", `{"name":"wait_result","arguments":{"task_id":"t1"}}`); !strings.Contains(end, `"finished":true`) {
		t.Errorf("waited for %s", end)
	}
	m.stop(serve) // while its events are followed
	answered(5, "tools/call", `{"name":"cancel_task","arguments":{"task_id":"t1"}}`)
	answered(6, "tools/call", `{"name":"no_such_tool"}`)
	answered(7, "no/such/method", `{}`)
	answered(8, "tools/call", `{"name":"read_result","arguments":{"task_id":"t1"}}`)
	in.Close()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("at the end standard output has %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("mailboxd mcp: %v; want exit 0 when the editor hangs up", err)
	}
}

func TestASignalEndsTheServerOfAnEditor(t *testing.T) {
	m := newManager(t)
	m.configure("")
	cmd := exec.Command("mailboxd", "mcp", "--config", filepath.Join(m.dir, "config.yaml"))
	cmd.Env = m.env
	if _, err := cmd.StdinPipe(); err != nil { // held open, as an editor does
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it ends, or the test does not
}

func TestWhatAnAgentSendsCountsAsItsChild(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: worker, exec: {command: [otheragent, delegate-mcp], env: [XDG_STATE_HOME, AINL_AGENT_ROOT, XDG_CONFIG_HOME]}}, " +
		"{id: helper, exec: {command: [agent, ok]}}]\n")
	m.start()
	m.run("send", "--agent", "worker", "--type", "work", "--id", "parent", "--wait")
	var shown exhibit
	out := m.run("show", "child", "--json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Task.Requester != "worker" || shown.Parent != "parent" {
		t.Errorf("the child is %s", out)
	}
	if result := m.awaitFile("box/results/parent.json"); !strings.Contains(result, "child ok; cancel refused: true") {
		t.Errorf("the agent says %s", result)
	}
}

// delegateAsEditor is an agent whose model sends a task through the tools of an editor,
// in somebody else's name if it could, and then tries to end one.
func delegateAsEditor() {
	cmd := exec.Command("mailboxd", "mcp", "--as", "boss")
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	call := func(tool, arguments string) (string, bool) {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: jsontext.Value(arguments)})
		if err != nil {
			panic(err)
		}
		return result.Content[0].(*mcp.TextContent).Text, result.IsError
	}
	call("send_task", `{"target_agent":"helper","task_type":"work","description":"d","task_id":"child"}`)
	end, _ := call("wait_result", `{"task_id":"child"}`)
	how := "lost"
	if strings.Contains(end, `"finished":true`) {
		how = "ok"
	}
	_, refused := call("cancel_task", `{"task_id":"parent"}`)
	fmt.Printf(`{"status":"ok","output":{"summary":"child %s; cancel refused: %v","actions":[]}}`+"\n", how, refused)
}
