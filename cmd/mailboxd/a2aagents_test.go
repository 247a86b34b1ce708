package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/internal/running/external"
	"mailboxd/internal/testtools/a2astub"
)

// newA2AAgent starts an agent of A2A, and a daemon with three that are it: far, short, which has little time, and
// again, which is idempotent.
func newA2AAgent(t *testing.T, streams bool) (*manager, *a2astub.Agent, *exec.Cmd) {
	t.Helper()
	m, a := newUnwatched(t), a2astub.New(a2a.TransportProtocolJSONRPC, streams)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	m.configure(fmt.Sprintf(`notify: {waits: []}
approval: {self: allow}
agents:
  - {id: far, a2a: {url: %[1]s}, backoff: 10ms}
  - {id: short, a2a: {url: %[1]s}, timeout: 300ms}
  - {id: again, a2a: {url: %[1]s}, backoff: 10ms, idempotent: true}
`, a.URL))
	return m, a, m.start()
}

// ask sends a task in words to an agent.
func (m *manager) ask(agent, id, words string, more ...string) {
	m.t.Helper()
	args := []string{"send", "--agent", agent, "--type", "work", "--id", id, "--description", words, "--requester", "tester"}
	m.run(append(args, more...)...)
}

// awaitKnownTask waits until the host of a run knows the task of its agent.
func (m *manager) awaitKnownTask(id string) {
	m.t.Helper()
	pattern := filepath.Join(m.dir, "state/mailboxd/*/runs", id, "*", external.RecordFile)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			continue
		}
		if r, _, err := external.ReadRecord(filepath.Dir(files[0])); err == nil && r.Task != "" {
			return
		}
	}
	m.t.Fatalf("no host of %s knew its task in two minutes", id)
}

// once returns a function that does something at the first call of a method.
func once(method string, do func()) func(string) {
	return func(call string) {
		if call == method {
			once := do
			do = func() {}
			once()
		}
	}
}

func TestNoKillOfHostOrDaemonLeadsToASecondMessageOfARun(t *testing.T) {
	m, a, serve := newA2AAgent(t, false)
	killDaemon := func() { _ = serve.Process.Kill() }
	killAll := func() { m.killAll(serve.Process) }
	for i, c := range []struct {
		name, agent, at string
		do              func()
		restart         bool
		want            string
		messages        int
	}{
		{"nothing", "far", "", nil, false, "did ", 1},
		{"host at the message", "far", "SendMessage", m.killHosts, false, "run_lost", 1},
		{"host at the message of an idempotent agent", "again", "SendMessage", m.killHosts, false, "did ", 2},
		{"host at the task", "far", "GetTask", m.killHosts, false, "did ", 1},
		{"daemon at the message", "far", "SendMessage", killDaemon, true, "did ", 1},
		{"daemon at the task", "far", "GetTask", killDaemon, true, "did ", 1},
		{"all at the message", "far", "SendMessage", killAll, true, "run_lost", 1},
		{"all at the task", "far", "GetTask", killAll, true, "did ", 1},
	} {
		a.Before(once(c.at, c.do))
		before := len(a.Calls())
		id := fmt.Sprintf("t%d", i)
		m.ask(c.agent, id, "slow "+c.name)
		if c.restart {
			_ = serve.Wait()
			serve = m.start()
		}
		result := m.awaitFile("box/results/" + id + ".json")
		sent := 0
		for _, call := range a.Calls()[before:] {
			if call == "SendMessage" {
				sent++
			}
		}
		if !strings.Contains(result, c.want) || sent != c.messages {
			t.Errorf("%s: %d messages, and %s; want %d, and %s", c.name, sent, result, c.messages, c.want)
		}
	}
	m.stop(serve)
}

func TestAQuestionOfAnAgentOfA2AIsAnsweredByAPerson(t *testing.T) {
	for _, streams := range []bool{false, true} {
		m, a, serve := newA2AAgent(t, streams)
		m.ask("far", "t1", "ask")
		m.awaitOutput(`"t1"`, "ps", "--json", "--state", "held")
		if got := m.run("thread", "t1"); !strings.Contains(got, "ask: because") {
			t.Errorf("thread printed %s; want the question", got)
		}
		serve = m.restart(serve)
		m.run("reply", "t1", "the second one")
		if result := m.awaitFile("box/results/t1.json"); !strings.Contains(result, `did \"the second one\"`) {
			t.Errorf("result %s; want what came of the reply", result)
		}
		all := a.Messages()
		if len(all) != 2 || all[1].TaskID == "" || all[1].ContextID == "" {
			t.Errorf("messages %+v; want the reply for the same task", all)
		}
		m.stop(serve)
	}
}

func TestAnAgentOfA2AThatNeedsALoginIsAskedForTheSameTaskAfterIt(t *testing.T) {
	m, a, serve := newA2AAgent(t, true)
	m.ask("far", "t1", "login")
	m.awaitOutput(`"t1"`, "ps", "--json", "--state", "held")
	if got := m.run("show", "t1", "--json"); !strings.Contains(got, `"auth_required"`) || !strings.Contains(got, "log in first") {
		t.Errorf("show printed %s; want that it waits for a login", got)
	}
	a.Release()
	m.run("release", "t1")
	if result := m.awaitFile("box/results/t1.json"); !strings.Contains(result, "did ") || len(a.Messages()) != 1 {
		t.Errorf("%d messages, and %s; want one, and its answer", len(a.Messages()), result)
	}
	m.stop(serve)
}

func TestACancelledTaskIsCancelledAtItsAgentOfA2A(t *testing.T) {
	for _, streams := range []bool{false, true} {
		m, a, serve := newA2AAgent(t, streams)
		m.ask("far", "t1", "wait")
		m.awaitKnownTask("t1")
		m.run("cancel", "t1")
		m.awaitFile("box/results/t1.json")
		if calls := a.Calls(); !slices.Contains(calls, "CancelTask") {
			t.Errorf("calls %q; want CancelTask", calls)
		}
		m.stop(serve)
	}
}

func TestAnAgentOfA2AThatNeverEndsHasTheTimeOfTheRun(t *testing.T) {
	m, a, serve := newA2AAgent(t, true)
	m.ask("short", "t1", "wait")
	result := m.awaitFile("box/results/t1.json")
	if n := len(a.Messages()); !strings.Contains(result, `"kind": "timeout"`) || n > 1 {
		t.Errorf("result %s after %d messages; want a timeout, and one at most", result, n)
	}
	m.stop(serve)
}

func TestACardThatChangedAfterAnApprovalIsApprovedAgain(t *testing.T) {
	m, a, serve := newA2AAgent(t, true)
	m.run("pause", "far")
	m.ask("far", "t1", "do this", "--approval", "pre")
	m.awaitOutput("with the card sha256", "show", "t1")
	if out := m.run("doctor", "--json", "--config", filepath.Join(m.dir, "config.yaml")); !strings.Contains(out, "Stub") {
		t.Errorf("doctor printed %s; want the name of the card", out)
	}
	m.run("approve", "t1", "--unseen")
	a.SetCard(func(c *a2a.AgentCard) { c.Description = "does something else now" })
	m.run("resume", "far")
	m.awaitOutput(`"approval"`, "ps", "--json", "--state", "held")
	if len(a.Messages()) > 0 {
		t.Errorf("%d messages before the second approval", len(a.Messages()))
	}
	m.run("approve", "t1", "--unseen")
	if result := m.awaitFile("box/results/t1.json"); !strings.Contains(result, "did ") || len(a.Messages()) != 1 {
		t.Errorf("%d messages, and %s; want one, and its answer", len(a.Messages()), result)
	}
	m.stop(serve)
}
