package realagents_test

import (
	"fmt"
	"strings"
	"testing"
)

// farAgents starts an agent of the npm SDK for each way to speak with it, and the daemon that has them as its agents.
func farAgents(t *testing.T) (*box, map[string]*nodeAgent) {
	t.Helper()
	needPrograms(t)
	t.Parallel()
	const token = "token-of-the-agent"
	b := nodeBox(t)
	b.env = append(b.env, "FAR_TOKEN="+token)
	agents, config := map[string]*nodeAgent{}, fmt.Sprintf("root: %q\nagents:\n", b.home+"/box")
	for name, c := range map[string]struct{ binding, streaming string }{
		"jsonrpc": {"JSONRPC", "yes"}, "rest": {"HTTP+JSON", "yes"}, "polled": {"JSONRPC", "no"},
	} {
		agents[name] = b.startAgent(t, c.binding, "AGENT_TOKEN="+token, "AGENT_STREAMING="+c.streaming)
		config += fmt.Sprintf("  - {id: %s, a2a: {url: %q, bearer_env: FAR_TOKEN}}\n", name, agents[name].url)
	}
	b.write(configFile, config)
	b.serve()
	return b, agents
}

func TestAnAgentOfTheNPMSDKDoesTasks(t *testing.T) {
	b, agents := farAgents(t)
	for name, agent := range agents {
		for _, c := range []struct{ words, status, want string }{
			{"do complete", "ok", "it is complete\n\nthe text of the report"},
			{"do stream", "ok", "line 1\nline 2\nline 3"},
			{"do message", "ok", "a message, and no task"},
			{"do fail", "error", `the agent failed: "it went wrong"`},
			{"do reject", "error", `the agent rejected the task: "no such work here"`},
		} {
			s := b.mailboxd(b.work, "ask", name, c.words, "--wait", "--json")
			r := b.resultOf(s)
			if r.Status != c.status || !strings.Contains(r.Output.Summary+r.Error.Message, c.want) {
				t.Errorf("%s: %s: the result is %s; want %s with %q", name, c.words, s.out, c.status, c.want)
			}
			if c.words == "do complete" && (!strings.Contains(s.out, "report.txt") || !strings.Contains(s.out, "bytes.bin")) {
				t.Errorf("%s: the result is %s; want both artifacts", name, s.out)
			}
			if got := agent.arrived(); got.Got != "message" || got.MessageID == "" || got.Words != c.words {
				t.Errorf("%s: the agent got %+v; want one message with %q", name, got, c.words)
			}
		}
	}
}

func TestAnAgentOfTheNPMSDKAsksAndIsAnswered(t *testing.T) {
	b, agents := farAgents(t)
	for name, agent := range agents {
		b.must(b.mailboxd(b.work, "send", "--agent", name, "--type", "work", "--id", name, "--description", "do ask"))
		first := agent.arrived()
		b.until("Which colour?", "thread", name)
		b.must(b.mailboxd(b.work, "reply", name, "green"))
		if s := b.mailboxd(b.work, "wait", name); !strings.Contains(s.out, "the colour is green") {
			t.Errorf("%s: wait printed %s%s; want what came of the reply", name, s.out, s.err)
		}
		if got := agent.arrived(); got.TaskID == "" || got.Words != "green" || got.MessageID == first.MessageID {
			t.Errorf("%s: the agent got %+v; want the reply, for its task", name, got)
		}
	}
}

func TestATaskOfTheNPMSDKIsCancelledThereOrWaitsForALogin(t *testing.T) {
	b, agents := farAgents(t)
	for name, agent := range agents {
		b.must(b.mailboxd(b.work, "send", "--agent", name, "--type", "work", "--id", name, "--description", "do wait"))
		agent.arrived()
		b.until("running", "ps", "--json")
		b.must(b.mailboxd(b.work, "cancel", name))
		if got := agent.arrived(); got.Got != "cancel" {
			t.Errorf("%s: the agent got %+v; want the cancellation", name, got)
		}
		if s := b.mailboxd(b.work, "wait", name, "--json"); !strings.Contains(s.out, `"cancelled"`) {
			t.Errorf("%s: wait printed %s%s; want a cancelled task", name, s.out, s.err)
		}
		login := name + "-login"
		b.must(b.mailboxd(b.work, "send", "--agent", name, "--type", "work", "--id", login, "--description", "do login"))
		b.until("auth_required", "show", login, "--json")
	}
}
