package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/testtools/strict"
)

// read returns a file of a run directory; "" for none.
func read(t testing.TB, j task.Job, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(j.Dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// decodeCAP decodes a message of a CAP conversation.
func decodeCAP(t testing.TB, line string) envelope.Message {
	t.Helper()
	c, _ := dialect.Of(envelope.CAP)
	m, findings := c.Decode([]byte(line), envelope.Strict)
	if findings.Refused() {
		t.Fatalf("%s is refused: %v", line, findings)
	}
	return m
}

const reply = `{"type":"message", "task_id":"T1", "sender_id":"user", "recipient_id":"tester", "content":"By market."}`

func TestAnAgentReadsTheConversationInItsDialect(t *testing.T) {
	for d, check := range map[envelope.Dialect]func([]byte) error{envelope.CLowl: strict.CLowl, envelope.CAP: strict.CAP} {
		stamped := strings.NewReplacer(`"content"`, `"timestamp":"2026-03-09T23:00:00Z","content"`, `"context_summary"`, `"timestamp":"2026-03-09T23:00:00Z","context_summary"`)
		for _, j := range []task.Job{jobFor(t, request("")), asked(t, stamped.Replace(asksCAP)), asked(t, asksCLowl)} {
			j.Conversation = []envelope.Message{decodeCAP(t, reply)}
			speaking(t, d, "").Run(t.Context(), j, nil)
			lines := strings.Split(strings.TrimSpace(read(t, j, "conversation.jsonl")), "\n")
			if len(lines) != 2 || !strings.Contains(lines[1], "By market.") {
				t.Fatalf("the conversation is %q", lines)
			}
			for _, line := range lines {
				if err := check([]byte(line)); err != nil {
					t.Errorf("%s is no %s: %v", line, d, err)
				}
			}
			if got := read(t, j, "request.json"); strings.TrimSpace(got) != lines[0] && envelope.MarkedAs([]byte(got)) != d {
				t.Errorf("request.json is %s", got)
			}
		}
	}
}

func TestAnAgentReadsTheExactBytesOfARequestInItsDialect(t *testing.T) {
	for d, line := range map[envelope.Dialect]string{envelope.CLowl: asksCLowl, envelope.CAP: asksCAP, envelope.AINL: request("")} {
		j := asked(t, line)
		speaking(t, d, "").Run(t.Context(), j, nil)
		if got := read(t, j, "request.json"); got != line {
			t.Errorf("request.json is %s, want %s", got, line)
		}
	}
}

func TestAnAgentIsToldWhereItsConversationIs(t *testing.T) {
	b := playing(t, "converse", "{{.ConversationFile}}")
	b.Dialect = envelope.CAP
	j := asked(t, asksCAP)
	o := bound(t, b).Run(t.Context(), j, nil)
	want := filepath.Join(j.Dir, "conversation.jsonl")
	if o.Result.Output.Summary != want+" "+want+" "+asksCAP+"\n" {
		t.Errorf("it was told %q, want %s", o.Result.Output.Summary, want)
	}
}

func TestAnAINLAgentPaysNothingForConversations(t *testing.T) {
	j := jobFor(t, request(""))
	o := bound(t, playing(t, "tell")).Run(t.Context(), j, nil)
	if said := string(o.Result.Output.Extra); strings.Contains(said, "MAILBOX_CONVERSATION_FILE") || read(t, j, "conversation.jsonl") != "" || read(t, j, "system_prompt.txt") != "" {
		t.Errorf("it was told %s", said)
	}
	j = jobFor(t, request(""))
	j.Conversation = []envelope.Message{decodeCAP(t, reply)}
	bound(t, playing(t, "tell")).Run(t.Context(), j, nil)
	lines := strings.Split(strings.TrimSpace(read(t, j, "conversation.jsonl")), "\n")
	if last := lines[len(lines)-1]; envelope.MarkedAs([]byte(last)) != envelope.AINL || !strings.Contains(last, "By market.") {
		t.Errorf("an AINL agent reads %q", lines)
	}
}

func TestThePromptBeginsWithTheDefinitionAndHoldsTheConversationAsData(t *testing.T) {
	b := playing(t, "converse")
	b.Dialect, b.Stdin = envelope.CAP, agent.Prompt
	b.Definition = &dialect.Definition{
		ID: "tester", SystemPrompt: "You are TestAgent.", AllowedAgents: []string{"analyst-1"}, Rules: map[string]string{"analyst-1": "When it is deep."},
		Bindings: []dialect.MCPBinding{{Server: "DocsServer", Scopes: []string{"read:docs"}, Tools: []string{"read_file"}}},
	}
	j := asked(t, asksCAP)
	j.Conversation = []envelope.Message{decodeCAP(t, reply)}
	bound(t, b).Run(t.Context(), j, nil)
	prompt := read(t, j, "prompt.txt")
	rest := prompt
	for _, want := range []string{
		"You are TestAgent.\n\n", "You may hand work to the agent analyst-1: When it is deep.\n", "MCP server DocsServer: read_file (read:docs)",
		"Answer in CAP", "BEGIN CONVERSATION ", "BEGIN CONVERSATION ", asksCAP + "\n", "By market.", "END CONVERSATION ",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q does not come next in the prompt:\n%s", want, prompt)
		}
		rest = after
	}
	if !strings.HasPrefix(prompt, "You are TestAgent.") || read(t, j, "system_prompt.txt") != "You are TestAgent." {
		t.Errorf("the prompt begins %.40q, system_prompt.txt is %q", prompt, read(t, j, "system_prompt.txt"))
	}
}

func TestWhatIsSubmittedIsReadInTheAgentsDialectOrAsOurToolsSayIt(t *testing.T) {
	b := agent.Binding{ID: "tester", Dialect: envelope.CAP, Inbox: &agent.Inbox{File: "agents/tester/inbox.jsonl"}}
	agents, err := agent.New([]agent.Binding{b}, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := asked(t, asksCAP)
	j.Dir = ""
	for _, said := range []string{
		`{"type":"message","task_id":"T1","sender_id":"tester","recipient_id":"pm-1","content":"It runs."}`,
		`{"status":"ok","output":{"summary":"It runs.","actions":[]}}`,
	} {
		o, err := agents.Answered(j, []byte(said), task.Exit{Code: -1})
		if err != nil || o.Result.Status != envelope.OK || o.Result.Output.Summary != "It runs." {
			t.Errorf("%s: %v, %+v", said, err, o.Result)
		}
	}
	if o, err := agents.Answered(j, []byte(`{"type":"message","task_id":"T1","sender_id":"qa-1","recipient_id":"pm-1","content":"It runs."}`), task.Exit{Code: -1}); err == nil {
		t.Errorf("what another one says is taken: %+v", o)
	}
}

func TestADialectIsOneThatWeSpeakAndAWorkerHasOne(t *testing.T) {
	b := playing(t, "tell")
	b.Dialect = "klingon"
	if _, err := agent.New([]agent.Binding{b}, agent.Options{}); err == nil || !strings.Contains(err.Error(), `dialect: "klingon" is not one of ainl, clowl, cap`) {
		t.Errorf("New = %v", err)
	}
	w := agent.Binding{ID: "w", Dialect: envelope.CAP, Worker: &agent.Worker{Command: b.Command[:1]}}
	if _, err := agent.New([]agent.Binding{w}, agent.Options{}); err == nil || !strings.Contains(err.Error(), "dialect: a worker speaks ainl") {
		t.Errorf("New = %v", err)
	}
}
