package main

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A waited is how a wait_result that runs beside the test has ended.
type waited struct {
	ended
	err error
}

// waitBeside starts a wait_result. Other editors may go on meanwhile.
func (e *mcpEditor) waitBeside(id string) (end <-chan waited) {
	e.t.Helper()
	done := make(chan waited, 1)
	params := &mcp.CallToolParams{Name: "wait_result", Arguments: jsontext.Value(`{"task_id":"` + id + `"}`)}
	params.SetProgressToken("wait for " + id)
	e.calls.Go(func() {
		result, err := e.CallTool(e.t.Context(), params)
		got := waited{err: err}
		if err == nil {
			got.err = e.decode(result, &got.ended)
		}
		done <- got
	})
	return done
}

// reported returns where the server says that the task of a wait is. It says so every five seconds.
func (e *mcpEditor) reported(wait <-chan waited) string {
	e.t.Helper()
	select {
	case reported := <-e.progress:
		return reported
	case got := <-wait:
		e.t.Fatalf("a wait has ended early: %+v", got)
	case <-e.t.Context().Done():
		e.t.Fatal("no progress was reported")
	}
	return ""
}

func TestAWaitThatBeganBeforeTheDaemonEndsWithTheResultAlone(t *testing.T) {
	m := newManager(t)
	m.configure("agents: [{id: worker, exec: {command: [agent, ok]}}]\n")
	sender, other := m.editor(protocols[0]), m.editor(protocols[1])
	sender.must("send_task", `{"target_agent":"worker","task_type":"work","description":"d","task_id":"t1"}`, &struct{}{})
	own, others := sender.waitBeside("t1"), other.waitBeside("t1")
	said := sender.reported(own)
	if !strings.Contains(said, "has not read it yet") {
		t.Errorf("the sender is told %q; want that the daemon has not read the task yet", said)
	}
	said = other.reported(others)
	if !strings.Contains(said, "unknown") || strings.Contains(said, "no such task") {
		t.Errorf("the other editor is told %q; want that the task is unknown so far", said)
	}
	m.start()
	for name, wait := range map[string]<-chan waited{"the sender": own, "the other editor": others} {
		end := <-wait
		if end.err != nil || !end.Finished || end.Result.Status != "ok" || end.Why != "" {
			t.Errorf("the wait of %s has ended with %+v; want the result, and no reason to wait", name, end)
		}
	}
}

func TestAWaitForATaskThatNobodyKnowsSaysSo(t *testing.T) {
	m := newManager(t)
	m.configure("")
	m.start()
	var end ended
	m.editor(protocols[0]).must("wait_result", `{"task_id":"nothing","timeout_seconds":0}`, &end)
	if end.Finished || end.State != "unknown" || !strings.Contains(end.Why, "may not have read it yet") {
		t.Errorf("the wait has ended with %+v; want the task unknown", end)
	}
}
