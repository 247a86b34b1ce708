package realagents_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// forEachHost runs a test with each program that a host can run.
func forEachHost(t *testing.T, test func(t *testing.T, b *box)) {
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			needPrograms(t)
			t.Parallel()
			test(t, emptyBox(t, p, fakemodel.Start))
		})
	}
}

// askedShellCall is a call that writes shell.txt with a shell, and that each program asks about:
// Codex asks only to leave its own sandbox.
func (b *box) askedShellCall() fakemodel.Reply {
	if b.program.name != "codex" {
		return b.shellCall()
	}
	return fakemodel.ToolCall("exec_command", map[string]any{
		"cmd": "echo hi > shell.txt", "sandbox_permissions": "require_escalated", "justification": "May I write?",
	})
}

func TestRealAgentsRunACommandThatIsAllowed(t *testing.T) {
	forEachHost(t, func(t *testing.T, b *box) {
		b.model.Script(b.askedShellCall(), fakemodel.Text("I wrote shell.txt."))
		h := b.host("Write shell.txt", "allow", "")
		if h.Status != "ok" || h.Text != "I wrote shell.txt." || !b.has("shell.txt") || len(h.asked) != 1 || len(h.called) != 0 {
			t.Errorf("shell.txt is there: %v, and the result is %+v; want one question, and the file", b.has("shell.txt"), h)
		}
		if b.program.name == "gemini" { // it has the command only in the title
			return
		}
		if got := h.asked[0]; got.Kind != "execute" || got.Command != "echo hi > shell.txt" {
			t.Errorf("the question is %+v; want the command", got)
		}
	})
}

func TestRealAgentsDoNothingThatIsRejected(t *testing.T) {
	forEachHost(t, func(t *testing.T, b *box) {
		for _, call := range []fakemodel.Reply{b.askedShellCall(), b.writeCall()} {
			b.rejected(call, "")
		}
	})
}

// rejected has a program make a call that is rejected. Claude Code may ask the model beside the turn
// when it continues a session, so the call comes twice.
func (b *box) rejected(call fakemodel.Reply, resume string) {
	b.t.Helper()
	b.model.Script(call, call, fakemodel.Text("I could not."))
	asked := len(b.model.Requests())
	h := b.host("Write a file", "reject", resume)
	if resume != "" && b.lostSession(h, asked) {
		return
	}
	if b.has("shell.txt") || b.has("hello.txt") || len(h.asked) == 0 || len(h.called) != 0 {
		b.t.Errorf("shell.txt is there: %v, hello.txt: %v, and the result is %+v; want a question, and no file",
			b.has("shell.txt"), b.has("hello.txt"), h)
	}
}

// lostSession reports whether Gemini CLI did not find a session: when it starts twice in a minute, it may
// begin the file of a session anew. The model must not have been asked then.
func (b *box) lostSession(h hosted, asked int) bool {
	b.t.Helper()
	lost := b.program.name == "gemini" && h.Error.Kind == "session_unavailable"
	if lost && len(b.model.Requests()) != asked {
		b.t.Error("the model was asked without the session")
	}
	return lost
}

func TestRealAgentsAskWithTheDiffOfAnEdit(t *testing.T) {
	forEachHost(t, func(t *testing.T, b *box) {
		b.model.Script(b.writeCall(), fakemodel.Text("I wrote hello.txt."))
		h := b.host("Write hello.txt", "allow", "")
		if h.Status != "ok" || !b.has("hello.txt") || len(h.asked) != 1 {
			t.Fatalf("hello.txt is there: %v, and the result is %+v; want one question, and the file", b.has("hello.txt"), h)
		}
		got, path := h.asked[0], filepath.Join(b.work, "hello.txt")
		if got.Kind != "edit" || len(got.Paths) == 0 || got.Paths[0] != path || !strings.Contains(got.Diff, "+++ "+path+"\n") ||
			!strings.Contains(got.Diff, "\n+hi\n") {
			t.Errorf("the question is %+v; want the path and the diff", got)
		}
	})
}

// The settings are those with which a repository would have its calls allowed.
func TestRealAgentsAskInARepositoryThatAllowsEverything(t *testing.T) {
	settings := map[string]struct{ file, text string }{
		"claude": {".claude/settings.json", `{"permissions": {"allow": ["Bash", "Write", "Edit"], "defaultMode": "bypassPermissions"}}`},
		"codex":  {".codex/config.toml", "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n"},
		"gemini": {".gemini/settings.json", `{"tools": {"allowed": ["run_shell_command", "write_file"]}}`},
		"opencode": {"opencode.json", `{"permission": {"bash": "allow", "edit": "allow"},
			"agent": {"mailboxd": {"permission": {"bash": "allow", "edit": "allow"}}}}`},
	}
	forEachHost(t, func(t *testing.T, b *box) {
		own := settings[b.program.name]
		b.write(filepath.Join("work", own.file), own.text)
		for _, call := range []fakemodel.Reply{b.askedShellCall(), b.writeCall()} {
			b.rejected(call, "")
		}
	})
}

func TestRealAgentsContinueASessionAndAskInIt(t *testing.T) {
	forEachHost(t, func(t *testing.T, b *box) {
		b.model.Script(fakemodel.Text("I will keep it in mind."))
		first := b.host("The word is plum.", "reject", "")
		if first.Status != "ok" || first.Session == "" {
			t.Fatalf("the result is %+v; want a session", first)
		}
		b.model.Script(fakemodel.Text("It is plum."))
		before := len(b.model.Requests())
		second := b.host("What is the word?", "reject", first.Session)
		if b.lostSession(second, before) {
			return
		}
		requests := b.model.Requests()
		if body := string(requests[len(requests)-1].Body); second.Status != "ok" || second.Session != first.Session ||
			!strings.Contains(body, "The word is plum.") {
			t.Fatalf("the result is %+v; want the same session, and the first message for the model", second)
		}
		b.rejected(b.askedShellCall(), first.Session)
	})
}
