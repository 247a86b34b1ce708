package realagents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// loggedOut are the settings of a person who installed a program and never logged in, by the name of
// the program. Only the address of the provider is that of the box.
var loggedOut = map[string]func(*box) []string{
	"claude": func(b *box) []string { return []string{"ANTHROPIC_BASE_URL=" + b.model.URL()} },
	"codex": func(b *box) []string { // https://developers.openai.com/codex/config-reference
		b.write(".codex/config.toml", "openai_base_url = \""+b.model.URL()+"/v1\"\n")
		return nil
	},
	"gemini": func(b *box) []string { return []string{"GOOGLE_GEMINI_BASE_URL=" + b.model.URL()} },
	"opencode": func(b *box) []string {
		b.write(".config/opencode/opencode.json", strings.ReplaceAll(`{
  "model": "fake/fake-model", "enabled_providers": ["fake"],
  "provider": {"fake": {
    "npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": {"baseURL": "@URL@/v1"},
    "models": {"fake-model": {"name": "Fake", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}
  }}
}`, "@URL@", b.model.URL()))
		return nil
	},
}

// loginCommands are what the hold of a program that isn't logged in must name.
var loginCommands = map[string]string{
	"claude":   "run claude, then type /login; or pass it ANTHROPIC_API_KEY by exec.env",
	"codex":    "codex login; or pass it CODEX_API_KEY by exec.env",
	"gemini":   "run gemini, then type /auth; or pass it GEMINI_API_KEY by exec.env",
	"opencode": "opencode auth login",
}

func TestAProgramThatIsNotLoggedInHoldsItsTaskAndNamesTheCommand(t *testing.T) {
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			needPrograms(t)
			t.Parallel()
			p.login = loggedOut[p.name]
			b := newBox(t, p)
			b.plain()
			b.serve()
			b.model.Script(fakemodel.Fails(fakemodel.Unauthorized, 0)) // what a provider says to a request without a key

			s := b.mailboxd(b.work, "ask", p.name, "What is the answer?", "--wait")
			if s.code != 8 || !strings.Contains(s.err, loginCommands[p.name]) {
				t.Errorf("without a terminal, ask --wait ends with %d and says\n%s\nwant 8 and %q", s.code, s.err, loginCommands[p.name])
			}
			id := b.lastID()

			waiting := b.atTerminal("ask", p.name, "And this one?", "--wait")
			b.await("the hold of the other task", func() bool {
				s := b.mailboxd(b.work, "show", "last", "--json")
				return s.code == 0 && !strings.Contains(s.out, id) && strings.Contains(s.out, `"auth_required"`)
			})
			b.await("the note at the terminal", func() bool { return strings.Contains(waiting.shown.String(), "the task waits for") })
			b.must(b.mailboxd(b.work, "cancel", b.lastID(), "--reason", "not today"))
			asked, code := waiting.end()
			if code == 8 {
				t.Error("at a terminal, ask --wait ends with 8; want it to wait for the person")
			}
			b.golden("login."+p.name, asked+"--------\n"+b.screen("show", id)+"--------\n"+b.doctorOf("login"))
		})
	}
}

// doctorOf returns the lines of doctor about one of its checks.
func (b *box) doctorOf(check string) string {
	b.t.Helper()
	shown, _ := b.atTerminal("doctor").end() // it may find something else
	var lines string
	for line := range strings.Lines(shown) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == check {
			lines += line
		}
	}
	return lines
}

// One screen is for all programs: init asks one question, whatever it finds.
func TestInitAsksWhatTheInstalledProgramsMayDoAndWritesIt(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	first := all[0]
	first.login = func(*box) []string { return nil }
	b := emptyBox(t, first, fakemodel.Start)
	bin := filepath.Join(b.home, "bin")
	for _, p := range all[1:] {
		if err := os.Symlink(filepath.Join(programs(), "node_modules", ".bin", p.name), filepath.Join(bin, p.name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(os.Getenv(daemonVariable), filepath.Join(bin, "mailboxd")); err != nil {
		t.Fatal(err)
	}
	b.write("work/a.txt", "a\n")
	b.write(".gitconfig", "[user]\n\tname = Somebody\n\temail = somebody@example.com\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "Add a"}} {
		b.must(b.run(b.work, "git", args...))
	}
	p := newTypist(t, b)
	p.do("mailboxd init")
	if !strings.Contains(b.read(configFile), "sandbox: {") {
		t.Skip("this machine makes no sandbox (bubblewrap with user namespaces), and init writes one into the golden configuration")
	}
	b.golden("init", strings.ReplaceAll(string(p.seen), "\r\n", "\n")+"\n--------\n"+b.read(configFile))
}
