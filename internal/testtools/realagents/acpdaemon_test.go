package realagents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// hostedEntry makes the agent that init proposed one that asks over ACP, with rules.
func (b *box) hostedEntry(rules string) {
	b.t.Helper()
	name := acpCommands[b.program.name].command[0]
	link := filepath.Join(b.home, "bin", name)
	if _, err := os.Lstat(link); err != nil {
		if err := os.Symlink(filepath.Join(programs(), "node_modules", ".bin", name), link); err != nil {
			b.t.Fatal(err)
		}
	}
	var lines []string
	for line := range strings.SplitSeq(b.read(configFile), "\n") {
		own := strings.Replace(line, `command: ["`+filepath.Join(b.home, "bin", b.program.name)+`"], `, "", 1)
		switch {
		case strings.HasPrefix(line, "    profile:"):
			lines = append(lines, "    profile: "+b.program.name+"-acp", "    acp: "+rules)
		case strings.HasPrefix(line, "    permission:"), strings.HasPrefix(line, "    acp:"):
		case b.program.name == "claude" && own != line:
			lines = append(lines, strings.Replace(own, "env: [", "env: [IS_SANDBOX=1, ", 1))
		default:
			lines = append(lines, own)
		}
	}
	b.write(configFile, strings.Join(lines, "\n"))
}

func TestRealAgentsAskTheDaemon(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.hostedEntry("{otherwise: reject}")
		b.serve()
		b.model.Script(b.askedShellCall(), b.askedShellCall(), fakemodel.Text("Done."))
		r := b.ask("Write shell.txt", "--in", b.work)
		if b.has("shell.txt") || r.Output.Session == "" {
			t.Errorf("shell.txt is there: %v, and the result is %+v; want no file", b.has("shell.txt"), r)
		}

		b.hostedEntry("{rules: [{kind: execute, do: allow}], otherwise: reject}")
		b.must(b.mailboxd(b.work, "reload"))
		b.model.Script(b.askedShellCall(), fakemodel.Text("I wrote shell.txt."))
		r = b.ask("Write shell.txt", "--in", b.work)
		if !b.has("shell.txt") || r.Status != "ok" || r.Output.Summary != "I wrote shell.txt." || r.Review.Required {
			t.Errorf("shell.txt is there: %v, and the result is %+v; want the file, and ok", b.has("shell.txt"), r)
		}
		log := b.must(b.mailboxd(b.work, "logs", r.ID)).out
		if !strings.Contains(log, "execute echo hi > shell.txt\n") || !strings.Contains(log, "I wrote shell.txt.\n") {
			t.Errorf("logs print\n%s\nwant the call and the text", log)
		}
	})
}

// Codex runs a command in its own read-only sandbox without asking.
func TestACommandOfCodexThatOnlyReadsDoesNotEndTheRun(t *testing.T) {
	needPrograms(t)
	b := newBox(t, named("codex"))
	b.plain()
	b.hostedEntry("{otherwise: reject}")
	b.serve()
	b.model.Script(fakemodel.ToolCall("exec_command", map[string]any{"cmd": "sleep 0.5; ls"}), fakemodel.Text("I looked."))
	r := b.ask("Look", "--in", b.work)
	events := b.must(b.mailboxd(b.work, "events", "--task", r.ID)).out
	if r.Status != "ok" || r.Output.Summary != "I looked." || !strings.Contains(events, "tool.unasked") {
		t.Errorf("the result is %+v, with the events\n%s\nwant ok, and the call recorded", r, events)
	}
}

func TestRealAgentsAskFromASandbox(t *testing.T) {
	forEachSandboxed(t, func(t *testing.T, b *box) {
		b.hostedEntry("{rules: [{kind: execute, do: allow}], otherwise: reject}")
		b.serve()
		b.model.Script(b.askedShellCall(), fakemodel.Text("I wrote shell.txt."))
		r := b.ask("Write shell.txt", "--in", b.work, "--worktree")
		if r.Status != "ok" || r.Output.Summary != "I wrote shell.txt." || r.Output.Enforcement["filesystem"] != "kernel" {
			t.Fatalf("the result is %+v; want ok, from a sandbox", r)
		}
		if diff := b.must(b.mailboxd(b.work, "diff", r.ID)).out; !strings.Contains(diff, "+++ b/shell.txt") {
			t.Errorf("diff prints\n%s\nwant shell.txt", diff)
		}

		b.model.Script(fakemodel.Text("It is that one."))
		next := b.resultOf(b.mailboxd(b.work, "ask", "--continue", r.ID, "Which file?", "--wait", "--json"))
		if b.program.name == "gemini" && next.Error.Kind == "session_unavailable" {
			return
		}
		requests := b.model.Requests()
		if body := string(requests[len(requests)-1].Body); next.Status != "ok" || next.Output.Session != r.Output.Session ||
			!strings.Contains(body, "Write shell.txt") {
			t.Errorf("the result is %+v; want the same session, and the first message for the model", next)
		}
	})
}
