package external

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/a2astub"
)

// newAgent starts an agent of A2A.
func newAgent(t *testing.T, binding a2a.TransportProtocol, streams bool) *a2astub.Agent {
	t.Helper()
	a := a2astub.New(binding, streams)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// requesting returns a request for a task that is described by some words.
func requesting(words string) func(*Options) {
	return func(o *Options) {
		const request = `{"task_id":"t1","description":%q,"input":{"payload":{"n":2}},"metadata":{"mbx.thread_id":"thread-1"}}`
		o.Request = fmt.Appendf(nil, request, words)
	}
}

func askedA2A(url string) task.Service { return asked(url, task.ServiceA2A) }

// converse has a host of a new run speak with an agent.
func converse(t *testing.T, a *a2astub.Agent, words string) Result {
	t.Helper()
	return run(t, newRun(t), askedA2A(a.URL), requesting(words))
}

// eachWay does a test with each binding, with and without streams.
func eachWay(t *testing.T, do func(t *testing.T, a *a2astub.Agent)) {
	for _, binding := range []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", binding, streams), func(t *testing.T) {
				t.Parallel()
				do(t, newAgent(t, binding, streams))
			})
		}
	}
}

func TestAnAgentOfA2AGetsTheTaskAsOneMessage(t *testing.T) {
	eachWay(t, func(t *testing.T, a *a2astub.Agent) {
		dir := newRun(t)
		got := run(t, dir, askedA2A(a.URL), requesting("do this"))
		if !strings.Contains(string(got.Answer), `"summary":"did \"do this\""`) || got.Kind != "" {
			t.Errorf("result = %+v %s; want the artifact as the summary", got, got.Answer)
		}
		all := a.Messages()
		if len(all) != 1 || all[0].ID != "run-1" || all[0].ContextID != "thread-1" || len(all[0].Parts) != 2 {
			t.Errorf("messages = %+v; want one with the ids of the run and the thread, and two parts", all)
		}
		if r, _, err := ReadRecord(dir); !r.Answered || r.Task == "" || err != nil {
			t.Errorf("record = %+v, %v; want an answered one with a task", r, err)
		}
	})
}

func TestTheStateOfATaskOfA2AIsItsResult(t *testing.T) {
	eachWay(t, func(t *testing.T, a *a2astub.Agent) {
		for word, want := range map[string]Result{
			"fail":   {Kind: envelope.AgentError, Message: `the agent failed: "fail: because"`},
			"reject": {Kind: envelope.AgentError, Message: `the agent rejected the task: "reject: because"`},
			"cancel": {Kind: envelope.Cancelled, Message: `the agent cancelled the task: "cancel: because"`},
			"ask":    {Question: "ask: because"},
			"login":  {Kind: envelope.AgentError, Message: `the agent needs a login: "log in first"`, Status: 401},
		} {
			got := converse(t, a, word)
			if got.Kind != want.Kind || got.Message != want.Message || got.Question != want.Question || got.Status != want.Status {
				t.Errorf("%s: result = %+v; want %+v", word, got, want)
			}
		}
		if got := converse(t, a, "direct"); !strings.Contains(string(got.Answer), `"summary":"directly"`) {
			t.Errorf("direct: result = %+v; want the message", got)
		}
	})
}

func TestArtifactsBecomeFilesOfTheRunWithSafeNames(t *testing.T) {
	a := newAgent(t, a2a.TransportProtocolJSONRPC, true)
	dir := newRun(t)
	got := run(t, dir, askedA2A(a.URL), requesting("files"))
	var answer struct {
		Output struct {
			N       int    `json:"n"`
			Summary string `json:"summary"`
		} `json:"output"`
		Artifacts []envelope.Ref `json:"artifacts"`
	}
	if err := json.Unmarshal(got.Answer, &answer); err != nil || answer.Output.N != 1 || answer.Output.Summary != `did "files"` {
		t.Errorf("answer = %s, %v; want the data and the text", got.Answer, err)
	}
	var names []string
	for _, ref := range answer.Artifacts {
		path, local := strings.CutPrefix(ref.URI, "file://")
		if local && filepath.Dir(path) != filepath.Join(dir, "a2a") {
			t.Errorf("%s is outside of the run", path)
		}
		if _, err := os.Stat(path); local && err != nil {
			t.Error(err)
		}
		names = append(names, filepath.Base(ref.URI))
	}
	if len(names) != 4 || names[0] != "pass_wd.bin" || names[3] != "x" {
		t.Errorf("artifacts = %q; want the raw part, the data, the text, and one address", names)
	}
}

// next has the host of another run go on with what an earlier one did.
func next(t *testing.T, earlier, run string, s task.Service, kill, words string, said ...string) (dir, out string, killed bool) {
	t.Helper()
	dir = filepath.Join(filepath.Dir(earlier), run)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Carry(earlier, dir); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(said)
	if err := os.WriteFile(filepath.Join(dir, SaidFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, killed = runRequest(t, dir, run, s, kill, words)
	return dir, out, killed
}

// a2aSteps are the points at which a host is killed.
var a2aSteps = []string{"recorded", "sent", "accepted", "located", "polled", "answered", "printed"}

func TestAKilledHostAsksForTheSameTaskOfA2A(t *testing.T) {
	for _, streams := range []bool{false, true} {
		for _, step := range a2aSteps {
			for _, idempotent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%s/%v", streams, step, idempotent), func(t *testing.T) {
					t.Parallel()
					a := newAgent(t, a2a.TransportProtocolJSONRPC, streams)
					s := askedA2A(a.URL)
					s.Idempotent = idempotent
					first := newRun(t)
					out, killed := runRequest(t, first, "run-1", s, step, "do this")
					switch {
					case !killed && step == "polled":
						return // the first answer said all
					case !killed:
						t.Fatalf("the host printed %q and wasn't killed", out)
					}
					_, out, _ = next(t, first, "run-2", s, "", "do this")
					got, placed := resultOf(t, out), slices.Index(a2aSteps, step) >= slices.Index(a2aSteps, "located")
					all := a.Messages()
					if len(all) > 1 && !idempotent {
						t.Errorf("%d messages; want one", len(all))
					}
					for _, m := range all {
						if m.ID != "run-1" {
							t.Errorf("a message has the id %s; want that of the first run", m.ID)
						}
					}
					switch {
					case placed && len(all) != 1:
						t.Errorf("%d messages; want one, since the task was known", len(all))
					case placed || idempotent:
						if !strings.Contains(string(got.Answer), "did ") {
							t.Errorf("second host: %+v; want the answer", got)
						}
					case got.Kind != envelope.RunLost || !strings.Contains(got.Message, "isn't idempotent"):
						t.Errorf("second host: %+v; want run_lost with the reason", got)
					}
				})
			}
		}
	}
}

func TestAReplyIsTheNextMessageOfTheSameTask(t *testing.T) {
	eachWay(t, func(t *testing.T, a *a2astub.Agent) {
		first := newRun(t)
		s := askedA2A(a.URL)
		runRequest(t, first, "run-1", s, "", "ask")
		second, out, _ := next(t, first, "run-2", s, "", "ask")
		if got := resultOf(t, out); got.Question != "ask: because" || len(a.Messages()) != 1 {
			t.Errorf("without a reply: %+v after %d messages; want the question again", got, len(a.Messages()))
		}
		_, out, _ = next(t, second, "run-3", s, "", "ask", "the second one")
		if got := resultOf(t, out); !strings.Contains(string(got.Answer), `did \"the second one\"`) {
			t.Errorf("after the reply: %+v; want the answer", got)
		}
		all := a.Messages()
		if len(all) != 2 || all[1].ID != "run-3" || all[1].TaskID == "" || all[1].TaskID != all[0].TaskID && all[0].TaskID != "" {
			t.Errorf("messages = %+v; want the reply with the id of its run and of the task", all)
		}
	})
}

func TestAReplyIsSentOnceWhereverItsHostIsKilled(t *testing.T) {
	for _, step := range []string{"recorded", "sent", "accepted", "located", "answered"} {
		for _, idempotent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", step, idempotent), func(t *testing.T) {
				t.Parallel()
				a := newAgent(t, a2a.TransportProtocolJSONRPC, false)
				s := askedA2A(a.URL)
				s.Idempotent = idempotent
				first := newRun(t)
				runRequest(t, first, "run-1", s, "", "ask")
				second, out, killed := next(t, first, "run-2", s, step, "ask", "the second one")
				if !killed {
					t.Fatalf("the host printed %q and wasn't killed", out)
				}
				_, out, _ = next(t, second, "run-3", s, "", "ask", "the second one")
				got := resultOf(t, out)
				if n := len(a.Messages()); n > 2 {
					t.Errorf("%d messages; want the request and one reply", n)
				}
				lost, answered := got.Kind == envelope.RunLost, strings.Contains(string(got.Answer), "second one")
				unsure := !idempotent && (step == "recorded" || step == "sent")
				if !answered && !(lost && unsure) || step == "recorded" && !idempotent && !lost {
					t.Errorf("third host: %+v; want the answer, or run_lost where the reply may not have arrived", got)
				}
			})
		}
	}
}

func TestAnEndedRunCancelsItsTaskOfA2A(t *testing.T) {
	eachWay(t, func(t *testing.T, a *a2astub.Agent) {
		ctx, end := context.WithCancel(t.Context())
		dir := newRun(t)
		var known sync.WaitGroup
		known.Go(func() {
			defer end()
			for r := (Record{}); r.Task == "" && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
				r, _, _ = ReadRecord(dir) // it is written as a whole
			}
		})
		defer known.Wait()
		var out strings.Builder
		o := Options{Service: askedA2A(a.URL), Dir: dir, RunID: "run-1", Stdout: &out, Stderr: os.Stderr, Progress: filepath.Join(dir, "p")}
		requesting("wait")(&o)
		if err := Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		got := resultOf(t, out.String())
		cancelled := slices.ContainsFunc(a.Calls(), func(call string) bool { return strings.Contains(strings.ToLower(call), "cancel") })
		if got.Kind != envelope.Cancelled || !cancelled {
			t.Errorf("result = %+v, calls = %q; want a cancelled task", got, a.Calls())
		}
	})
}
