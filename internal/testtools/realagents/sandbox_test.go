package realagents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// sandboxed makes a box whose directory is a repository with a.txt, and whose model server is
// reached from a sandbox: by TLS, and through the gate, since the loopback device of a sandbox
// is its own.
func sandboxed(t testing.TB, p program) *box {
	t.Helper()
	b := newBoxWith(t, p, func() (*fakemodel.Server, error) { return fakemodel.StartTLS("127.0.0.2") }, func(b *box) {
		b.write("work/a.txt", "the text of a\n")
		b.write(".gitconfig", "[user]\n\tname = Somebody\n\temail = somebody@example.com\n")
		for _, args := range [][]string{{"init", "-q"}, {"add", "a.txt"}, {"commit", "-qm", "Add a"}} {
			b.must(b.run(b.work, "git", args...))
		}
	})
	authority := filepath.Join(b.home, "authority.pem")
	b.write("authority.pem", string(b.model.Authority()))
	b.env = append(b.env, "NODE_EXTRA_CA_CERTS="+authority, "CODEX_CA_CERTIFICATE="+authority)
	entry := regexp.MustCompile(`sandbox: \{profile: workspace[^}]*\}`)
	text := b.read(configFile)
	if !entry.MatchString(text) {
		t.Skip("this machine makes no sandbox")
	}
	host := strings.TrimPrefix(b.model.URL(), "https://")
	text = entry.ReplaceAllLiteralString(text, `sandbox: {profile: workspace, network: ["`+host+`"], read: ["`+authority+`"]}`)
	b.write(configFile, strings.Replace(text, "env: [", "env: [NODE_EXTRA_CA_CERTS, CODEX_CA_CERTIFICATE, ", 1))
	return b
}

// forEachSandboxed runs a test with each program in its sandbox, beside others.
func forEachSandboxed(t *testing.T, test func(t *testing.T, b *box)) {
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			needPrograms(t)
			t.Parallel()
			test(t, sandboxed(t, p))
		})
	}
}

func TestInASandboxAskPrintsTheAnswerAndNoHostIsMissed(t *testing.T) {
	forEachSandboxed(t, func(t *testing.T, b *box) {
		b.serve()
		reply := fakemodel.Text("The answer is 42.")
		reply.Usage = fakemodel.Usage{Input: 1200, Output: 340}
		b.model.Script(reply)
		s := b.must(b.mailboxd(b.work, "ask", b.program.name, "What is the answer?", "--wait"))
		if s.out != "The answer is 42.\n" {
			t.Errorf("ask printed %q; want the answer", s.out)
		}
		r := b.result()
		if r.Status != "ok" || r.Output.Session == "" || r.Review.Required || r.Cost.Tokens != 1540 || r.Cost.Cents != b.program.cents {
			t.Errorf("result = %+v; want ok with a session, 1540 tokens, %d cents, and nothing to review", r, b.program.cents)
		}
		for _, control := range []string{"filesystem", "network", "mailbox"} {
			if r.Output.Enforcement[control] != "kernel" {
				t.Errorf("%s was held by %q; want the kernel", control, r.Output.Enforcement[control])
			}
		}
		shown := b.must(b.mailboxd(b.work, "show", "last")).out
		for line := range strings.Lines(shown) {
			missed := strings.Contains(line, "network: refused") && !strings.Contains(line, "does without") || strings.Contains(line, "sandbox.refused")
			if missed && !strings.Contains(line, "chatgpt.com:443") { // which Codex's own list has
				t.Errorf("show says %q; want no host missed", line)
			}
		}
	})
}

// addAgents adds agents that read only, and that edit in place, beside the one of init, which edits
// in a worktree.
func (b *box) addAgents() {
	b.t.Helper()
	text := b.read(configFile)
	at := strings.Index(text, "  - id: "+b.program.name+"\n")
	var entry []string
	for line := range strings.Lines(text[at:]) {
		if len(entry) > 0 && !strings.HasPrefix(line, "    ") {
			break
		}
		if !strings.HasPrefix(line, "    manifest:") {
			entry = append(entry, line)
		}
	}
	own := strings.Join(entry, "")
	inPlace := strings.NewReplacer("- id: "+b.program.name, "- id: place", ", worktree: true", "").Replace(own)
	reader := strings.NewReplacer("- id: place", "- id: reader", "permission: edit", "permission: read_only", "profile: workspace", "profile: read-only").Replace(inPlace)
	b.write(configFile, text[:at]+inPlace+reader+text[at:])
}

// otherHome makes a home directory with a key, and a script in the repository that reads a.txt and
// the key: opencode asks before commands that name files outside.
func (b *box) otherHome(text string) (key string) {
	b.t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "rb-")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left of it harms nobody
	key = filepath.Join(dir, "id_ed25519")
	if err := os.WriteFile(key, []byte(text+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.write("work/look.sh", "cat a.txt "+key+"\n")
	b.must(b.run(b.work, "git", "add", "look.sh"))
	b.must(b.run(b.work, "git", "commit", "-qm", "Add a script"))
	return key
}

// commandCall is a call that runs a command, in the words of a program.
func (b *box) commandCall(command string) fakemodel.Reply {
	switch b.program.name {
	case "claude":
		return fakemodel.ToolCall("Bash", map[string]any{"command": command, "description": "Look"})
	case "codex":
		return fakemodel.ToolCall("exec_command", map[string]any{"cmd": command})
	case "gemini":
		return fakemodel.ToolCall("run_shell_command", map[string]any{"command": command, "description": "Look"})
	}
	return fakemodel.ToolCall("bash", map[string]any{"command": command, "description": "Look"})
}

// readCall is a call that reads a file, in the words of a program.
func (b *box) readCall(path string) fakemodel.Reply {
	switch b.program.name {
	case "claude":
		return fakemodel.ToolCall("Read", map[string]any{"file_path": path})
	case "codex":
		return b.commandCall("cat " + path)
	case "gemini":
		return fakemodel.ToolCall("read_file", map[string]any{"file_path": path})
	}
	return fakemodel.ToolCall("read", map[string]any{"filePath": path})
}

// askToWrite has an agent make some calls, and then a call that writes hello.txt.
func (b *box) askToWrite(agent string, before fakemodel.Reply) said {
	b.t.Helper()
	b.model.Script(before, b.writeCall(), fakemodel.Text("I wrote hello.txt."))
	return b.must(b.mailboxd(b.work, "ask", agent, "Write hello.txt", "--wait"))
}

func TestInASandboxAProgramWritesOnlyWhereItMayAndReadsNoOtherHome(t *testing.T) {
	forEachSandboxed(t, func(t *testing.T, b *box) {
		const canary = "canary-6d0f7c"
		key := b.otherHome(canary)
		b.addAgents()
		b.serve()
		at := filepath.Join(b.work, "hello.txt")
		look := b.commandCall("sh look.sh")

		if s := b.askToWrite("reader", b.readCall(key)); !strings.Contains(s.err, "was not allowed to use ") {
			t.Errorf("ask of an agent that reads only said %q; want what it was not allowed", s.err)
		}
		if _, err := os.Stat(at); err == nil {
			t.Error("an agent that reads only wrote hello.txt")
		}
		b.checkWorktree(b.askToWrite(b.program.name, look))
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		b.askToWrite("place", look)
		if text := b.read("work/hello.txt"); text != "hi\n" {
			t.Errorf("an agent in place wrote %q", text)
		}
		read := 0
		for _, r := range b.model.All() {
			last := r.Messages[len(r.Messages)-1].Text
			if strings.Contains(last, "the text of a") {
				read++
			}
			if strings.Contains(string(r.Body), canary) {
				t.Errorf("the agent read the key of another home: %s", last)
			}
		}
		if read != 2 {
			t.Errorf("%d commands read a.txt; want 2", read)
		}
	})
}

// checkWorktree checks the work of an agent in a worktree, who held it, and applies it.
func (b *box) checkWorktree(s said) {
	b.t.Helper()
	if _, err := os.Stat(filepath.Join(b.work, "hello.txt")); err == nil {
		b.t.Error("an agent in a worktree wrote into the working tree")
	}
	_, id, _ := strings.Cut(s.err, "to apply: mailboxd apply ")
	id, _, _ = strings.Cut(id, "\n")
	if diff := b.must(b.mailboxd(b.work, "diff", id)).out; !strings.Contains(diff, "+hi") {
		b.t.Errorf("diff printed %q; want hello.txt", diff)
	}
	b.must(b.mailboxd(b.work, "apply", id))
	if text := b.read("work/hello.txt"); text != "hi\n" {
		b.t.Errorf("apply brought %q", text)
	}
	var r result
	if text := b.must(b.mailboxd(b.work, "result", id, "--json")).out; json.Unmarshal([]byte(text), &r) != nil {
		b.t.Fatalf("result printed %q", text)
	}
	level := "agent-flag"
	if b.program.name == "codex" { // which has a sandbox of its own, and leaves it off in ours
		level = "kernel"
	}
	if r.Output.Enforcement["tools"] != level {
		b.t.Errorf("tools were held by %q; want %q", r.Output.Enforcement["tools"], level)
	}
}
