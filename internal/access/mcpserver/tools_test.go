package mcpserver_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/mcpserver"
)

// A model pays for the list of tools with every prompt.
func TestTheListOfToolsIsShort(t *testing.T) {
	for _, version := range versions {
		listed, err := connect(t, version, empty(t), mcpserver.Options{}, nil).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(listed.Tools, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if tokens := len(text) / 4; tokens > 1500 || len(listed.Tools) > 9 {
			t.Errorf("%s: %d tools of about %d tokens; want 9 and 1500 at most", version, len(listed.Tools), tokens)
		}
		for _, tool := range listed.Tools {
			if strings.Contains(tool.Name, "approve") || tool.OutputSchema == nil {
				t.Errorf("%s: tool %s must not be there, or has no output schema", version, tool.Name)
			}
		}
	}
}

// What the list promises is what the tools take.
func TestEachToolTakesTheArgumentsOfItsSchema(t *testing.T) {
	listed, err := connect(t, "", empty(t), mcpserver.Options{}, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range listed.Tools {
		properties := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		got, want := mcpserver.Arguments()[tool.Name], slices.Sorted(maps.Keys(properties))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s decodes %v; its schema has %v", tool.Name, got, want)
		}
	}
}

func TestAWrongArgumentIsToldToTheModel(t *testing.T) {
	e := connect(t, "", empty(t), mcpserver.Options{Requester: "ed"}, nil)
	for _, c := range []struct{ tool, arguments, want string }{
		{"read_result", `{"task_id":"../x"}`, "task_id: must not contain"},
		{"read_result", `{"id":"x"}`, "id: no such argument; there are task_id"},
		{"read_result", `{"task_id":"x","Task_ID":"y"}`, "Task_ID: no such argument; there are task_id"},
		{"read_result", `{}`, "task_id: required"},
		{"read_result", `{"task_id":null}`, "task_id: required"},
		{"read_result", `{"task_id":7}`, "task_id: must be text, not a number"},
		{"read_result", `{"task_id":["x"]}`, "task_id: must be text, not a list"},
		{"read_result", `{"task_id":"x","task_id":"y"}`, "task_id: appears more than once"},
		{"read_result", `["x"]`, "arguments: must be an object"},
		{"list_agents", `{"all":true}`, "all: no such argument"},
		{"list_tasks", `{"state":"finished"}`, `state: must be received, held, queued, running, waiting, review or done, not "finished"`},
		{"list_tasks", `{"state":7}`, "state: must be received, held, queued, running, waiting, review or done"},
		{"list_tasks", `{"limit":"many"}`, "limit: must be a whole number, not text"},
		{"list_tasks", `{"limit":2.5}`, "limit: must be a whole number, not 2.5"},
		{"wait_result", `{"task_id":"x","timeout_seconds":"soon"}`, "timeout_seconds: must be a number, not text"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","more":"budget"}`, "more: must be an object, not text"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","refs":{}}`, "refs: must be a list, not an object"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","refs":[{"kind":"file"}]}`, "refs[0].uri: required"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","refs":[{"kind":"file","uri":7}]}`, "refs[0].uri: must be a string"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","approval":"maybe"}`, `approval: must be none, pre, post or both, not "maybe"`},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","approval":true}`, "approval: must be none, pre, post or both"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","deadline":"tomorrow"}`,
			`deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "tomorrow"`},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","more":{"Budget_Limit":{}}}`, `more.Budget_Limit: unknown field; did you mean "budget_limit"?`},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","more":{"budget_limit":{"tokens":"many"}}}`,
			"more.budget_limit.tokens: must be a whole number, 0 or more"},
		{"submit_result", `{"task_id":"t1","agent_id":"a","status":"ok","summary":"s","actions":"none"}`, "actions: must be a list, not text"},
		{"read_result", `{"task_id":"x"}`, "no such task: x"},
		{"show_task", `{"task_id":"x"}`, "no such task: x"},
		{"wait_result", `{"task_id":"x","timeout_seconds":-1}`, "timeout_seconds"},
		{"list_tasks", `{"limit":-1}`, "limit"},
		{"cancel_task", `{"task_id":"x"}`, "start it with: mailboxd serve"},
		{"send_task", `{"target_agent":"a","task_type":"t"}`, "description: required"},
		{"submit_result", `{"task_id":"t1","agent_id":"a","status":"maybe","summary":"s"}`, "status: must be ok, error or partial"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d"}`, "no space left on device"},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","more":{"requester_id":"boss"}}`, "more.requester_id"},
	} {
		_, err := e.call(t.Context(), c.tool, c.arguments)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s(%s) = %v; want %q", c.tool, c.arguments, err, c.want)
		}
		for _, word := range []string{"unmarshal", "Go ", "json:", "jsontext", "schema", "struct"} {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Errorf("%s(%s) = %v; want plain words", c.tool, c.arguments, err)
			}
		}
	}
}

// What a tool lowers, or leaves to the daemon, is not wrong, and null is not given.
func TestOtherArgumentsAreTaken(t *testing.T) {
	box := empty(t)
	box.Send = func(context.Context, []byte) (func(context.Context) (bool, error), error) {
		return func(context.Context) (bool, error) { return false, nil }, nil
	}
	e := connect(t, "", box, mcpserver.Options{Requester: "ed"}, nil)
	for _, c := range []struct{ tool, arguments string }{
		{"list_tasks", `{"limit":100000,"state":null}`},
		{"list_tasks", `null`},
		{"wait_result", `{"task_id":"x","timeout_seconds":0}`},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","role":"auditor","deadline":null,"refs":null,"more":null,"payload":null}`},
		{"send_task", `{"target_agent":"a","task_type":"t","description":"d","refs":[{"kind":"file","uri":"file://x","title":"y"}]}`},
	} {
		if _, err := e.call(t.Context(), c.tool, c.arguments); err != nil {
			t.Errorf("%s(%s) = %v; want it taken", c.tool, c.arguments, err)
		}
	}
}

func TestAgentsAreListedWithWhatTheyAreFor(t *testing.T) {
	box := empty(t)
	box.Agents = func() ([]mcpserver.Agent, error) {
		return []mcpserver.Agent{{ID: "clerk", Description: "Counts things.", TaskTypes: []string{"count_*"}}, {ID: "editor", Fetches: true}}, nil
	}
	answer, err := connect(t, "", box, mcpserver.Options{}, nil).call(t.Context(), "list_agents", `{}`)
	if want := `[{"agent_id":"clerk","description":"Counts things.","task_types":["count_*"]},{"agent_id":"editor","fetches":true}]`; string(answer["agents"]) != want || err != nil {
		t.Errorf("list_agents = %s, %v; want %s", answer["agents"], err, want)
	}
}

// Whatever happens, an editor reads messages and nothing else, and is answered
// again.
func TestAPanicIsAnAnswerAndTheServerStaysUp(t *testing.T) {
	var log bytes.Buffer
	box := empty(t)
	box.Read = func(context.Context, func(*client.Client) error) error { panic("the books burn") }
	e := connect(t, "", box, mcpserver.Options{Log: zerolog.New(&log)}, nil)
	for range 2 {
		if _, err := e.call(t.Context(), "list_tasks", "{}"); err == nil || !strings.Contains(err.Error(), "has a bug") {
			t.Fatalf("list_tasks = %v; want that it has a bug", err)
		}
	}
	if _, err := e.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mailbox://tasks/x"}); err == nil {
		t.Error("a resource whose reading panics was read")
	}
	if !strings.Contains(log.String(), "the books burn") {
		t.Errorf("the log says nothing of the panic: %s", &log)
	}
}

// The SDK would make 12345678901234567890 of it, rounded.
func TestAPayloadIsSentAsItIs(t *testing.T) {
	var sent []byte
	box := empty(t)
	box.Send = func(_ context.Context, line []byte) (func(context.Context) (bool, error), error) {
		sent = line
		return func(context.Context) (bool, error) { return false, nil }, nil
	}
	e := connect(t, "", box, mcpserver.Options{Requester: "reviewer", Parent: "parent-1"}, nil)
	answer, err := e.call(t.Context(), "send_task", `{"target_agent":"a","task_type":"t","description":"d\ne",
		"payload":{"n":12345678901234567890,"x":0.1000},"task_id":"t1","more":{"budget_limit":{"tokens":5},"metadata":{"k":1}}}`)
	if err != nil || string(answer["task_id"]) != `"t1"` || string(answer["daemon_running"]) != "false" {
		t.Fatalf("send_task = %v, %v", answer, err)
	}
	want := `{"task_id":"t1","budget_limit":{"tokens":5},"description":"d\ne","input":{"payload":{"n":12345678901234567890,"x":0.1000},"refs":[]},` +
		`"metadata":{"k":1,"mbx.parent_task_id":"parent-1"},"requester_id":"reviewer","schema_version":"1.0","target_agent":"a",` +
		`"target_role":"executor","task_type":"t"}`
	if string(sent) != want {
		t.Errorf("sent %s\nwant %s", sent, want)
	}
	if answer, err = e.call(t.Context(), "read_result", `{"task_id":"t1"}`); err != nil || string(answer["state"]) != `"sent"` {
		t.Errorf("read_result = %s, %v; want it sent", answer["state"], err)
	}
}

// A result that stands there when its id is sent again answers the earlier
// request.
func TestAnEarlierResultIsNoAnswerToALineThatIsOnItsWay(t *testing.T) {
	box := empty(t)
	taken := false
	box.Send = func(context.Context, []byte) (func(context.Context) (bool, error), error) {
		return func(context.Context) (bool, error) { return taken, nil }, nil
	}
	if err := os.Mkdir(box.Root+"/results", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(box.Root+"/results/t1.json", []byte(`{"task_id":"t1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := connect(t, "", box, mcpserver.Options{Requester: "ed"}, nil)
	finished := func() jsontext.Value {
		t.Helper()
		answer, err := e.call(t.Context(), "wait_result", `{"task_id":"t1","timeout_seconds":0.01}`)
		if err != nil {
			t.Fatal(err)
		}
		return answer["finished"]
	}
	if string(finished()) != "true" {
		t.Error("a result that outlived its ledger is not read")
	}
	if _, err := e.call(t.Context(), "send_task", `{"target_agent":"a","task_type":"t","description":"d","task_id":"t1"}`); err != nil {
		t.Fatal(err)
	}
	if string(finished()) != "false" {
		t.Error("the earlier result is taken for the answer")
	}
	taken = true
	if string(finished()) != "true" {
		t.Error("the result is not read once the line was taken")
	}
}
