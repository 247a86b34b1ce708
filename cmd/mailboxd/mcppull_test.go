package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// caught is what claim_task answers.
type caught struct {
	Found   bool           `json:"found"`
	TaskID  string         `json:"task_id"`
	Request jsontext.Value `json:"request"`
}

// submitted is what submit_result answers.
type submitted struct {
	State  string `json:"state"`
	Status string `json:"status"`
}

func TestAModelClaimsATaskAndAnswersIt(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: cursor.advisor, inbox: {}}]\n")
	m.start()
	for n, protocol := range protocols {
		asks, works := m.editor(protocol), m.editor(protocol)
		id := fmt.Sprintf("t%d", n)
		asks.must("send_task", fmt.Sprintf(`{"target_agent":"cursor.advisor","task_type":"advice","description":"d","payload":{"word":"moon"},"task_id":%q}`, id), &struct{}{})
		got := works.claim("cursor.advisor", id)
		if !strings.Contains(string(got.Request), "moon") {
			t.Errorf("%s: claimed %s", protocol, got.Request)
		}
		if err := works.ask("submit_result", fmt.Sprintf(`{"task_id":%q,"agent_id":"somebody","status":"ok","summary":"s"}`, id), &struct{}{}); err == nil {
			t.Errorf("%s: somebody else's answer was taken", protocol)
		}
		if err := asks.ask("submit_result", fmt.Sprintf(`{"task_id":%q,"agent_id":"cursor.advisor","status":"ok","summary":"s"}`, id), &struct{}{}); err == nil {
			t.Errorf("%s: an answer was taken from who had not claimed the task", protocol)
		}
		var done submitted
		works.must("submit_result", fmt.Sprintf(`{"task_id":%q,"agent_id":"cursor.advisor","status":"ok","summary":"it is full",
			"actions":[{"kind":"look","description":"up","status":"executed"}],"confidence":0.75}`, id), &done)
		end := asks.wait(id)
		if done.State != "done" || end.Result.Status != "ok" || end.Result.Output.Summary != "it is full" {
			t.Errorf("%s: submitted %+v, ended %+v", protocol, done, end)
		}
		var more caught
		if works.must("claim_task", `{"agent_id":"cursor.advisor"}`, &more); more.Found {
			t.Errorf("%s: there is another task, %+v", protocol, more)
		}
	}
}

// claim claims a task as soon as it waits.
func (e *mcpEditor) claim(agent, id string) (got caught) {
	e.t.Helper()
	e.until(id, func() bool {
		e.must("claim_task", fmt.Sprintf(`{"agent_id":%q}`, agent), &got)
		return got.TaskID == id
	})
	return got
}

// until looks whenever something may have happened to a task, until it has seen
// what it waits for.
func (e *mcpEditor) until(id string, seen func() bool) {
	e.t.Helper()
	if err := e.Subscribe(e.t.Context(), &mcp.SubscribeParams{URI: "mailbox://tasks/" + id}); err != nil {
		e.t.Fatal(err)
	}
	for !seen() {
		select {
		case <-e.changed:
		case <-e.t.Context().Done():
			e.t.Fatalf("waited for %s, which did not come", id)
		}
	}
}

func TestATaskHasOneClaimer(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: ed, inbox: {}}]\n")
	m.start()
	editors := []*mcpEditor{m.editor(protocols[0]), m.editor(protocols[1])}
	const tasks = 6
	for n := range tasks {
		m.run("send", "--agent", "ed", "--type", "work", "--id", fmt.Sprint("t", n))
	}
	for n := range tasks {
		id := fmt.Sprint("t", n)
		editors[0].until(id, func() bool {
			var shown exhibit // of nothing while the line is on its way
			err := editors[0].ask("show_task", fmt.Sprintf(`{"task_id":%q}`, id), &shown)
			return err == nil && shown.Task.State == "waiting"
		})
	}
	var mu sync.Mutex
	claimers := map[string]int{}
	var all sync.WaitGroup
	for _, e := range editors {
		all.Go(func() {
			for range tasks {
				var got caught
				if err := e.ask("claim_task", `{"agent_id":"ed"}`, &got); err != nil {
					t.Error(err)
				}
				mu.Lock()
				claimers[got.TaskID]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for n := range tasks {
		if id := fmt.Sprint("t", n); claimers[id] != 1 {
			t.Errorf("%s was claimed by %d; want 1", id, claimers[id])
		}
	}
}

func TestTheClaimOfAnEditorThatIsGoneComesBack(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: ed, inbox: {lease: 200ms}}]\n")
	m.start()
	lost, other := m.editorAs("ed", protocols[0]), m.editorAs("another", protocols[0])
	m.run("send", "--agent", "ed", "--type", "work", "--id", "t1")
	lost.claim("ed", "t1")
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	other.claim("ed", "t1")
	var done submitted
	if other.must("submit_result", `{"task_id":"t1","agent_id":"ed","status":"ok","summary":"s"}`, &done); done.State != "done" {
		t.Errorf("submitted %+v; want it done", done)
	}
}

func TestAnAbandonedClaimIsTakenUpAgainInTheSameNameAlone(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: agent, inbox: {}}]\n")
	serve := m.start()
	crashed, other := m.editorAs("cursor", protocols[0]), m.editorAs("zed", protocols[0])
	m.run("send", "--agent", "agent", "--type", "work", "--id", "t1")
	crashed.claim("agent", "t1")
	claimsNothing := func(e *mcpEditor, why string) {
		t.Helper()
		var got caught
		if e.must("claim_task", `{"agent_id":"agent"}`, &got); got.Found {
			t.Errorf("%s has claimed %s", why, got.TaskID)
		}
	}
	claimsNothing(m.editorAs("cursor", protocols[1]), "an editor of the same name, beside the one that works on it,")
	if err := crashed.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	crashed.Close() // the process is gone then; that it was killed is no matter here
	m.stop(serve)
	m.start()
	claimsNothing(other, "an editor of another name")
	again := m.editorAs("cursor", protocols[1])
	var got caught
	if again.must("claim_task", `{"agent_id":"agent"}`, &got); got.TaskID != "t1" {
		t.Fatalf("the editor has claimed %+v after its restart; want t1 again", got)
	}
	claimsNothing(again, "the editor that has it already")
	var done submitted
	if again.must("submit_result", `{"task_id":"t1","agent_id":"agent","status":"ok","summary":"s"}`, &done); done.State != "done" {
		t.Errorf("submitted %+v; want it done", done)
	}
}

// The requests of AINL's own examples: two agents are editors, one is a program.
func TestTheRequestsOfUpstreamRunThroughAnEditorAndThroughFiles(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(examples, "upstream/requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"editor", "files"} {
		t.Run(way, func(t *testing.T) {
			m := newManager(t)
			m.configure(strings.ReplaceAll(`agents:
  - {id: openclaw.monitor, manifest: $EXAMPLES/agents/openclaw.monitor.json, exec: {command: [$EXAMPLES/agents/monitor.sh], output: envelope}, retries: 9}
  - {id: cursor.advisor, manifest: $EXAMPLES/agents/cursor.advisor.json, inbox: {}}
  - {id: cursor.ops_advisor, manifest: $EXAMPLES/agents/cursor.ops_advisor.json, allow_unmetered: true, inbox: {}}
`, "$EXAMPLES", examples))
			m.start()
			e := m.editor(protocols[1])
			var ids []string
			for line := range bytes.Lines(lines) {
				ids = append(ids, e.pass(way, filepath.Join(m.dir, "box"), line))
			}
			for _, id := range ids[1:] {
				agent := map[string]string{ids[1]: "cursor.advisor", ids[2]: "cursor.ops_advisor"}[id]
				e.claim(agent, id)
				e.must("submit_result", fmt.Sprintf(`{"task_id":%q,"agent_id":%q,"status":"ok","summary":"looks fine","actions":[]}`, id, agent), &submitted{})
			}
			for _, id := range ids {
				if end := e.wait(id); end.Result.Status != "ok" {
					t.Errorf("%s ended %+v; want ok", id, end)
				}
				m.awaitFile("box/results/" + id + ".json")
			}
		})
	}
}

// pass sends a request on: as it is, into the mailbox, or through send_task.
func (e *mcpEditor) pass(way, box string, line []byte) string {
	e.t.Helper()
	var request map[string]jsontext.Value
	if err := json.Unmarshal(line, &request); err != nil {
		e.t.Fatal(err)
	}
	var sent struct {
		TaskID string `json:"task_id"`
	}
	if err := json.Unmarshal(request["task_id"], &sent.TaskID); err != nil {
		e.t.Fatal(err)
	}
	if way == "files" {
		f, err := os.OpenFile(filepath.Join(box, "tasks", "openclaw_agent_tasks.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			e.t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(line); err != nil {
			e.t.Fatal(err)
		}
		return sent.TaskID
	}
	var input map[string]jsontext.Value
	if err := json.Unmarshal(request["input"], &input); err != nil {
		e.t.Fatal(err)
	}
	arguments := map[string]any{
		"target_agent": request["target_agent"], "task_type": request["task_type"], "description": request["description"],
		"task_id": request["task_id"], "role": request["target_role"], "approval": request["approval_required"],
		"payload": input["payload"], "refs": input["refs"],
	}
	for _, ours := range []string{"target_agent", "task_type", "description", "task_id", "target_role", "approval_required", "input", "requester_id", "schema_version"} {
		delete(request, ours)
	}
	arguments["more"] = request
	text, err := json.Marshal(arguments)
	if err != nil {
		e.t.Fatal(err)
	}
	e.must("send_task", string(text), &sent)
	return sent.TaskID
}
