package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
)

func TestABadBindingIsRefusedByAgentAndElement(t *testing.T) {
	good := agent.Binding{ID: "good", Command: []string{"true"}}
	bad := func(set func(*agent.Binding)) []agent.Binding {
		b := agent.Binding{ID: "x", Command: []string{"true"}}
		set(&b)
		return []agent.Binding{good, b}
	}
	for want, bindings := range map[string][]agent.Binding{
		`agents[1] "": id: `:                   bad(func(b *agent.Binding) { b.ID = "" }),
		`agents[1] "a\nb": id: `:               bad(func(b *agent.Binding) { b.ID = "a\nb" }),
		`agents[1] "good": id: `:               bad(func(b *agent.Binding) { b.ID = "good" }),
		`agents[1] "GOOD": id: `:               bad(func(b *agent.Binding) { b.ID = "GOOD" }),
		`agents[1] "x": exec.command: `:        bad(func(b *agent.Binding) { b.Command = nil }),
		`agents[1] "x": exec.command[2]: `:     bad(func(b *agent.Binding) { b.Command = []string{"a", "b", "{{.Payload}}"} }),
		`agents[1] "x": exec.command[1]: `:     bad(func(b *agent.Binding) { b.Command = []string{"a", "{{.TaskFile"} }),
		`agents[1] "x": exec.command[0]: `:     bad(func(b *agent.Binding) { b.Command = []string{"a\x00"} }),
		`agents[1] "x": exec.output: "yaml" `:  bad(func(b *agent.Binding) { b.Output = "yaml" }),
		`agents[1] "x": exec.stdin: "tty" `:    bad(func(b *agent.Binding) { b.Stdin = "tty" }),
		`agents[1] "x": resend: "maybe" `:      bad(func(b *agent.Binding) { b.Resend = "maybe" }),
		`agents[1] "x": exec.env[1]: `:         bad(func(b *agent.Binding) { b.Env = []string{"A", "=b"} }),
		`agents[1] "x": exec.env[0]: names `:   bad(func(b *agent.Binding) { b.Env = []string{"MAILBOX_TASK_ID=t"} }),
		`agents[1] "x": timeout: `:             bad(func(b *agent.Binding) { b.Timeout = -1 }),
		`agents[1] "x": manifest: `:            bad(func(b *agent.Binding) { b.Manifest = &envelope.Manifest{AgentID: "y"} }),
		`agents[1] "x": exec.max_output: must`: bad(func(b *agent.Binding) { b.MaxOutput = -1 }),
	} {
		_, err := agent.New(bindings, agent.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New = %v; want an error that begins %s", err, want)
		}
	}
}

func TestWhatABindingLeavesOutHasADefault(t *testing.T) {
	got := bound(t, agent.Binding{ID: "x", Command: []string{"true"}}).Binding()
	if got.Output != agent.Envelope || got.Stdin != agent.Request || got.Resend != agent.Rerun || got.Grace != 5*time.Second ||
		got.MaxOutput != 64<<20 || got.Concurrency != 1 || got.Retries != 0 || got.Timeout != 0 {
		t.Errorf("Binding = %+v; want the defaults", got)
	}
}

func TestAgentsAreFoundByTheirExactID(t *testing.T) {
	agents, err := agent.New([]agent.Binding{
		{ID: "openclaw.monitor", Command: []string{"true"}},
		{ID: "cursor", Command: []string{"true"}},
	}, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := agents.IDs(), []string{"cursor", "openclaw.monitor"}; !slices.Equal(got, want) {
		t.Errorf("IDs = %q; want %q", got, want)
	}
	if _, ok := agents.Lookup("Cursor"); ok {
		t.Error("Lookup(Cursor) found cursor; want a comparison byte for byte")
	}
}

func TestAnAgentThatIsGoneRunsNothing(t *testing.T) {
	agents, err := agent.New(nil, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := jobFor(t, request(""))
	expect(t, "Run", agents.Run(t.Context(), j, nil), envelope.Rejected, envelope.UnknownAgent)
	got := agents.Recover(t.Context(), j)
	expect(t, "Recover", got, envelope.Failed, envelope.RunLost)
	if got.Result.AgentID != "tester" {
		t.Errorf("agent_id = %q; want the agent the task asked for", got.Result.AgentID)
	}
}
