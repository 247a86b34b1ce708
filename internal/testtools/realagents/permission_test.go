package realagents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// shellCall is a call that writes shell.txt with a shell, in the words of a program.
func (b *box) shellCall() fakemodel.Reply {
	const command = "echo hi > shell.txt"
	switch b.program.name {
	case "claude":
		return fakemodel.ToolCall("Bash", map[string]any{"command": command, "description": "write"})
	case "codex":
		return fakemodel.ToolCall("exec_command", map[string]any{"cmd": "sleep 0.5; " + command}) // it prints no event for one that ends at once
	case "gemini":
		return fakemodel.ToolCall("run_shell_command", map[string]any{"command": command, "description": "write"})
	}
	return fakemodel.ToolCall("bash", map[string]any{"command": command, "description": "write"})
}

// entry replaces the permission in the agent's entry by other lines, and has the daemon read it.
func (b *box) entry(lines ...string) {
	b.t.Helper()
	var text []string
	for line := range strings.SplitSeq(b.read(configFile), "\n") {
		switch {
		case strings.HasPrefix(line, "    permission:"):
			for _, own := range lines {
				text = append(text, "    "+own)
			}
		case !strings.HasPrefix(line, "    tools:"):
			text = append(text, line)
		}
	}
	b.write(configFile, strings.Join(text, "\n"))
	b.must(b.mailboxd(b.work, "reload"))
}

// has reports whether the directory of the person's work has a file.
func (b *box) has(name string) bool {
	_, err := os.Stat(filepath.Join(b.work, name))
	return err == nil
}

// The entry that init writes where there is no repository lets an agent read, and ask --in is
// accepted at once.
func TestWhatAnAgentMayDoHolds(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.serve()
		b.tried("read_only", nil)

		b.entry("permission: edit", "tools: [read]")
		b.tried("[read]", nil)
		b.entry("permission: edit", "tools: []")
		b.tried("[]", nil)

		b.entry("permission: edit")
		b.model.Script(b.writeCall(), fakemodel.Text("I wrote hello.txt."))
		r := b.ask("Write hello.txt", "--in", b.work)
		if !b.has("hello.txt") || r.Status != "ok" || r.Review.Required || r.Output.Enforcement["tools"] != "agent-flag" {
			t.Errorf("in place: hello.txt is there: %v, result %+v; want it, ok and nothing to review", b.has("hello.txt"), r)
		}
		b.inWorktree()
	})
}

// tried has the model write a file, and write another one with a shell. Neither may be done, and
// both are said.
func (b *box) tried(where string, flags []string) {
	b.t.Helper()
	b.model.Script(b.shellCall(), b.writeCall(), fakemodel.Text("I wrote hello.txt."))
	r := b.ask("Write hello.txt", append(flags, "--in", b.work)...)
	if b.has("hello.txt") || b.has("shell.txt") {
		b.t.Errorf("%s: a file was written", where)
	}
	var denied []denial
	if err := json.Unmarshal(r.Output.Denied, &denied); err != nil || len(denied) != 2 {
		b.t.Errorf("%s: output.denied = %s, %v; want both calls", where, r.Output.Denied, err)
	}
	if !r.Review.Required || !strings.Contains(r.Review.Reason, "was not allowed to use ") || !strings.Contains(r.Review.Reason, "to allow it, set ") {
		b.t.Errorf("%s: needs_review = %+v; want what would allow it", where, r.Review)
	}
	want := "agent-flag"
	if where == "[read]" && b.program.name == "codex" { // which reads with commands
		want = "advisory"
	}
	if got := r.Output.Enforcement["tools"]; got != want {
		b.t.Errorf("%s: tools were held %q; want %q", where, got, want)
	}
}

// inWorktree has the agent write a file in a worktree, and brings the work to the repository.
func (b *box) inWorktree() {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.work, "hello.txt")); err != nil {
		b.t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = b.work, b.env
		if out, err := git.CombinedOutput(); err != nil {
			b.t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	b.model.Script(b.writeCall(), fakemodel.Text("I wrote hello.txt."))
	r := b.ask("Write hello.txt", "--in", b.work, "--worktree")
	if r.Status != "ok" || r.Review.Required || b.has("hello.txt") {
		b.t.Errorf("in a worktree: result %+v, and hello.txt is in the repository: %v; want it in the clone only", r, b.has("hello.txt"))
	}
	diff := b.must(b.mailboxd(b.work, "diff", r.ID)).out
	if !strings.Contains(diff, "+++ b/hello.txt") || !slices.Contains(strings.Split(diff, "\n"), "+hi") {
		b.t.Errorf("diff prints\n%s\nwant hello.txt", diff)
	}
	b.must(b.mailboxd(b.work, "apply", r.ID))
	if !b.has("hello.txt") {
		b.t.Error("apply brought no hello.txt")
	}
}
