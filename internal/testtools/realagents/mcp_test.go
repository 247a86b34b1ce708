package realagents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// A client is a program as a user of the tools of mailboxd.
type client struct {
	args      []string // as a person starts it with a prompt and without a terminal
	prefix    string   // what it puts before the names of the tools
	servers   string   // the file in which its servers are entered
	requester string   // whom mailboxd takes it for
}

var clients = map[string]client{
	"claude": {
		args:   []string{"-p", "Go", "--allowedTools", "mcp__mailboxd"},
		prefix: "mcp__mailboxd__", servers: ".claude.json", requester: "claude-code",
	},
	"codex":    {args: []string{"exec", "--skip-git-repo-check", "Go"}, servers: ".codex/config.toml", requester: "codex"},
	"gemini":   {args: []string{"-p", "Go", "--skip-trust"}, prefix: "mcp_mailboxd_", servers: ".gemini/settings.json", requester: "gemini"},
	"opencode": {args: []string{"run", "Go"}, prefix: "mailboxd_", servers: ".config/opencode/opencode.json", requester: "opencode"},
}

// mailboxCall is a call of a tool of mailboxd, in the words of a program.
func (b *box) mailboxCall(tool string, input map[string]any) fakemodel.Reply {
	r := fakemodel.ToolCall(clients[b.program.name].prefix+tool, input)
	if b.program.name == "codex" {
		r.Calls[0].Namespace = "mcp__mailboxd"
	}
	return r
}

// allowServer writes the rule of docs/editors.md with which Gemini CLI asks nobody.
func (b *box) allowServer() {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "editors.md"))
	if err != nil {
		b.t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(text), "```toml\n[[rule]]\n")
	rule, _, found := strings.Cut(rule, "```")
	if !found {
		b.t.Fatal("docs/editors.md has no rule for Gemini CLI")
	}
	b.write(".gemini/policies/mailboxd.toml", "[[rule]]\n"+rule)
}

func TestTheProgramsUseTheMailboxByTheEntryThatInstallWrote(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		c := clients[b.program.name]
		b.serve()
		b.must(b.mailboxd(b.work, "mcp", "--install", b.program.name, "--yes"))
		if b.program.name == "gemini" {
			b.allowServer()
		}
		greeting := map[string]any{
			"task_id": "m1", "target_agent": "hello", "task_type": "greeting", "description": "Greet me.", "payload": map[string]any{"name": "you"},
		}
		held := map[string]any{"task_id": "m2", "target_agent": "hello", "task_type": "greeting", "description": "Wait.", "approval": "pre"}
		steps := []struct {
			call fakemodel.Reply
			want string // in what the program tells the model of the call
		}{
			{b.mailboxCall("list_agents", map[string]any{}), `"agent_id":"hello"`},
			{b.mailboxCall("send_task", greeting), `"task_id":"m1"`},
			{b.mailboxCall("wait_result", map[string]any{"task_id": "m1"}), `"finished":true`},
			{b.mailboxCall("read_result", map[string]any{"task_id": "m1"}), "Hello, you. This is task m1, attempt 1."},
			{b.mailboxCall("send_task", held), `"task_id":"m2"`},
			{b.mailboxCall("cancel_task", map[string]any{"task_id": "m2", "reason": "enough"}), `"status":"cancelled"`},
		}
		var script []fakemodel.Reply
		for _, s := range steps {
			script = append(script, s.call)
		}
		b.model.Script(append(script, fakemodel.Text("It is all done."))...)
		s := b.must(b.run(b.work, filepath.Join(b.home, "bin", b.program.name), c.args...))
		if !strings.Contains(s.out, "It is all done.") {
			t.Errorf("the program printed\n%s%s\nwant the text of the model", s.out, s.err)
		}
		requests := b.model.Requests()
		if len(requests) != len(steps)+1 {
			t.Fatalf("the model was asked %d times; want %d\n%s%s", len(requests), len(steps)+1, s.out, s.err)
		}
		for i, step := range steps {
			messages := requests[i+1].Messages
			said := strings.ReplaceAll(messages[len(messages)-1].Text, `\`, "")
			if !strings.Contains(said, step.want) {
				t.Errorf("%s answered %s; want %s", step.call.Calls[0].Tool, said, step.want)
			}
		}
		if shown := b.mailboxd(b.work, "show", "m2").out; !strings.Contains(shown, "requester  "+c.requester+"\n") {
			t.Errorf("show says\n%s\nwant the requester %s", shown, c.requester)
		}
		if entered := b.read(c.servers); !strings.Contains(entered, "--as") {
			t.Errorf("%s has no entry:\n%s", c.servers, entered)
		}
		b.must(b.mailboxd(b.work, "mcp", "--remove", b.program.name, "--yes"))
		if left := b.read(c.servers); strings.Contains(left, "--as") {
			t.Errorf("%s still has the entry:\n%s", c.servers, left)
		}
	})
}
